package bench

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Identify makes a server of a target: its name as the columns show it, and what it is exactly.
func Identify(ctx context.Context, name, binary string, argv []string) (Server, error) {
	if strings.ContainsRune(name, '/') {
		name = filepath.Base(name)
	}
	s := Server{Name: name, Argv: argv}
	out, err := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], "-v")...).CombinedOutput()
	if err != nil {
		return s, fmt.Errorf("%s -v: %w: %s", name, err, last(string(out)))
	}
	s.Version, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	s.Version = strings.TrimPrefix(s.Version, "nginx version: ")
	f, err := os.Open(binary)
	if err != nil {
		return s, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return s, fmt.Errorf("read %s: %w", binary, err)
	}
	s.SHA256 = fmt.Sprintf("%x", h.Sum(nil))
	return s, nil
}

// Apart gives the candidate a name of its own where both targets have one name.
func Apart(reference, candidate *Server) {
	if reference.Name == candidate.Name {
		candidate.Name += " again"
	}
}

func (s Server) String() string {
	return fmt.Sprintf("%s (%s, sha256 %.12s)", s.Name, s.Version, s.SHA256)
}
