package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
)

// diagnosis is what doctor found and tried.
type diagnosis struct {
	Machine string           `json:"machine"`
	Facts   []reference.Fact `json:"facts"`
	Targets []tried          `json:"targets"`
	Warning string           `json:"warning,omitempty"`
	Code    int              `json:"code"`
}

// tried is a target whose cell was opened.
type tried struct {
	Role    string  `json:"role"` // "reference" or "candidate"
	Name    string  `json:"name"`
	Cell    string  `json:"cell,omitempty"`
	From    string  `json:"from,omitempty"` // image or binary
	Version string  `json:"version,omitempty"`
	SHA256  string  `json:"sha256,omitempty"`
	OpenMS  float64 `json:"open_ms,omitempty"` // time to open its cell
	StartMS float64 `json:"start_ms,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func newDoctor(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what was found, what will be used, and what to install for more",
		Long: `doctor looks for everything the rig can use, then does what every run does
first: it gets the reference, opens a cell for each target and starts it there.
Exit code 0 means that cases can be run; 3 that they cannot, with the next step.`,
		Example: "  oracle doctor\n  oracle doctor --cell container --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			said := map[string]bool{} // the reference is looked for twice
			d := diagnose(cmd.Context(), o, func(s string) {
				if !said[s] {
					fmt.Fprintln(cmd.ErrOrStderr(), s)
				}
				said[s] = true
			})
			if cmd.Context().Err() != nil {
				return exit.Errorf(exit.Rig, "doctor: interrupted before all was tried")
			}
			code, text := d.verdict()
			d.Code = int(code)
			if o.JSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if err := enc.Encode(d); err != nil {
					return err
				}
			} else {
				d.print(cmd.OutOrStdout())
			}
			return done(cmd, code, "%s", text)
		},
	}
}

func diagnose(ctx context.Context, o *options, progress func(string)) *diagnosis {
	d := &diagnosis{
		Machine: fmt.Sprintf("%s/%s, %d CPUs, user id %d", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), os.Geteuid()),
		Facts:   reference.Facts(ctx),
	}
	// The reference alone first: without a candidate a person can still be told what works.
	p, err := reference.Resolve(ctx, o.Reference, o.Reference, o.Cell, progress)
	d.Warning = p.Warning
	d.Targets = append(d.Targets, try(ctx, "reference", o.Reference, p.Reference, err))
	if err == nil {
		p, err = reference.Resolve(ctx, o.Reference, o.Candidate, o.Cell, progress)
		d.Targets = append(d.Targets, try(ctx, "candidate", o.Candidate, p.Candidate, err))
	}
	return d
}

// try opens a cell for a target and starts it.
func try(ctx context.Context, role, name string, opts engine.Options, err error) tried {
	t := tried{Role: role, Name: name}
	if err == nil {
		t.Cell, t.From = opts.Kind, opts.Target.Image
		if opts.Target.Binary != "" {
			t.From = opts.Target.Binary
		}
		err = t.start(ctx, opts)
	}
	if err != nil {
		t.Error = err.Error()
	}
	return t
}

func (t *tried) start(ctx context.Context, opts engine.Options) error {
	began := time.Now()
	c, err := engine.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer c.Close()
	t.OpenMS = float64(time.Since(began).Microseconds()) / 1000
	t.Version, t.SHA256 = c.Info().Version, c.Info().SHA256
	const addr = "127.0.0.1:8080"
	conf := "events {}\nhttp { access_log off; server { listen " + addr + "; return 204; } }\n"
	if err := c.Reset(ctx, []engine.File{{Path: "nginx.conf", Data: []byte(conf)}}); err != nil {
		return err
	}
	began = time.Now()
	s, err := c.Start(ctx, []string{addr}, "-p", "/cell/", "-c", "/cell/nginx.conf", "-e", "stderr", "-g", "daemon off;")
	if err != nil {
		return err
	}
	t.StartMS = float64(time.Since(began).Microseconds()) / 1000
	fds, err := c.Dial(ctx, addr, 1)
	if err != nil {
		said, _ := s.Stderr(ctx)
		return fmt.Errorf("it does not listen: %w: %s", err, strings.TrimSpace(string(said)))
	}
	if err := os.NewFile(uintptr(fds[0]), addr).Close(); err != nil {
		return err
	}
	_, _, err = s.Stop(ctx)
	return err
}

func (d *diagnosis) verdict() (exit.Code, string) {
	for _, t := range d.Targets {
		if t.Error != "" {
			return exit.Rig, "doctor: the " + t.Role + " " + t.Name + " cannot be run"
		}
	}
	r := d.Targets[0]
	faults := ""
	for _, f := range d.Facts {
		if f.Fault {
			faults += ", but " + f.Name + " is set up wrongly (see above)"
		}
	}
	return exit.Agree, fmt.Sprintf("doctor: %s and %s run in %s cells%s", r.Name, d.Targets[1].Name, r.Cell, faults)
}

func (d *diagnosis) print(w io.Writer) {
	fmt.Fprintf(w, "machine  %s\n\nfound\n", d.Machine)
	for _, f := range d.Facts {
		mark := "yes"
		if !f.OK {
			mark = "no"
		}
		if f.Fault {
			mark = "BAD"
		}
		fmt.Fprintf(w, "  %-3s  %-22s %s\n", mark, f.Name, f.Found)
		if !f.OK && f.Next != "" {
			use := ""
			if f.Extra {
				use = " (" + f.Needs + ")"
			}
			fmt.Fprintf(w, "       %-22s -> %s%s\n", "", f.Next, use)
		}
	}
	fmt.Fprintf(w, "\nused\n")
	if d.Warning != "" {
		fmt.Fprintf(w, "  %s\n", d.Warning)
	}
	for _, t := range d.Targets {
		if t.Error != "" {
			fmt.Fprintf(w, "  %s %s: cannot be run\n    %s\n", t.Role, t.Name, strings.ReplaceAll(t.Error, "\n", "\n    "))
			continue
		}
		fmt.Fprintf(w, "  %s %s: %s\n    %s cell of %s\n    opened in %.1f ms, started in %.1f ms, sha256 %.16s…\n",
			t.Role, t.Name, t.Version, t.Cell, t.From, t.OpenMS, t.StartMS, t.SHA256)
	}
}
