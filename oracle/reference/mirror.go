package reference

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mirror is where Debian's packages come from and which key signs them.
type mirror struct {
	uri, key string
	from     string // the file that says so, or why it was chosen
}

const (
	defaultURI = "http://deb.debian.org/debian"
	defaultKey = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// findMirror is the Debian mirror that this machine uses already, or Debian's own.
func findMirror(etcApt string) mirror {
	names, _ := filepath.Glob(filepath.Join(etcApt, "sources.list.d", "*"))
	for _, name := range append([]string{filepath.Join(etcApt, "sources.list")}, names...) {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		var m mirror
		switch filepath.Ext(name) {
		case ".sources":
			m = readSources(f)
		case ".list":
			m = readList(f)
		}
		f.Close()
		if m.uri != "" {
			m.from = name
			if !strings.HasPrefix(m.key, "/") {
				m.key = defaultKey
			}
			return m
		}
	}
	return mirror{uri: defaultURI, key: defaultKey, from: "Debian's own mirror"}
}

// readSources reads the deb822 form (sources.list(5)).
func readSources(r io.Reader) mirror {
	fields := map[string]string{}
	var m mirror
	end := func() {
		uris := strings.Fields(fields["uris"])
		if m.uri == "" && fields["enabled"] != "no" && len(uris) > 0 && isDebian(uris[0], fields["types"], fields["suites"], fields["components"]) {
			m = mirror{uri: uris[0], key: strings.TrimSpace(fields["signed-by"])}
		}
		clear(fields)
	}
	last := ""
	for s := bufio.NewScanner(r); s.Scan(); {
		line := s.Text()
		switch {
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += "\n" + line
		default:
			k, v, _ := strings.Cut(line, ":")
			last = strings.ToLower(k)
			fields[last] = strings.TrimSpace(v)
		}
	}
	end()
	return m
}

// readList reads the one-line form.
func readList(r io.Reader) mirror {
	for s := bufio.NewScanner(r); s.Scan(); {
		line := s.Text()
		if !strings.HasPrefix(line, "deb ") {
			continue
		}
		line = strings.TrimSpace(line[4:])
		key := ""
		if strings.HasPrefix(line, "[") {
			options, rest, _ := strings.Cut(line[1:], "]")
			for _, o := range strings.Fields(options) {
				if v, ok := strings.CutPrefix(o, "signed-by="); ok {
					key = v
				}
			}
			line = rest
		}
		f := strings.Fields(line)
		if len(f) >= 3 && isDebian(f[0], "deb", f[1], strings.Join(f[2:], " ")) {
			return mirror{uri: f[0], key: key}
		}
	}
	return mirror{}
}

// isDebian tells whether a source is Debian's main archive, by the suites it offers.
func isDebian(uri, types, suites, components string) bool {
	known := []string{"bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable", "oldstable"}
	return slices.Contains(strings.Fields(types), "deb") &&
		slices.Contains(strings.Fields(components), "main") &&
		strings.Contains(uri, "://") && !strings.Contains(uri, "debian-security") &&
		slices.ContainsFunc(strings.Fields(suites), func(s string) bool { return slices.Contains(known, s) })
}
