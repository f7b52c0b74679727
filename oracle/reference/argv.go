package reference

import (
	"path/filepath"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/engine/tool"
)

// Argv is the command that runs a target on this machine, outside any cell, as
// the bench does: through the loader and the libraries of the target's own root
// where it has one.
func Argv(t engine.Target) ([]string, error) {
	static, err := tool.Static(t.Binary)
	if err != nil {
		return nil, err
	}
	if static || t.Root == "" || t.Root == "/" {
		return []string{t.Binary}, nil
	}
	loader, err := findLoader(t.Root)
	if err != nil {
		return nil, err
	}
	return []string{loader, "--library-path", filepath.Dir(loader), t.Binary}, nil
}
