package reference

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindMirror(t *testing.T) {
	const key = "/usr/share/keyrings/k.gpg"
	for name, c := range map[string]struct {
		file, text string
		uri, key   string
	}{
		"deb822": {"debian.sources", "Types: deb\n# a remark\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: " + key + "\n",
			"http://mirror.test/debian", key},
		"deb822, second stanza": {"x.sources", "Types: deb\nURIs: http://mirror.test/debian-security\nSuites: bookworm-security\nComponents: main\n\nTypes: deb deb-src\nURIs: https://mirror.test/debian/\nSuites:\n trixie\nComponents: contrib main\n",
			"https://mirror.test/debian/", defaultKey},
		"deb822, key inside": {"x.sources", "Types: deb\nURIs: http://mirror.test/debian\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n",
			"http://mirror.test/debian", defaultKey},
		"deb822, off":       {"x.sources", "Enabled: no\nTypes: deb\nURIs: http://mirror.test/debian\nSuites: sid\nComponents: main\n", defaultURI, defaultKey},
		"one line":          {"x.list", "# deb http://no.test/ sid main\ndeb http://mirror.test/debian bookworm main contrib\n", "http://mirror.test/debian", defaultKey},
		"one line, options": {"x.list", "deb [arch=amd64 signed-by=" + key + "] http://mirror.test/debian stable main\n", "http://mirror.test/debian", key},
		"another archive":   {"x.list", "deb https://packages.test/apt cloud-bookworm main\n", defaultURI, defaultKey},
		"flat archive":      {"x.sources", "Types: deb\nURIs: https://packages.test/\nSuites: nodistro\nComponents: main\n", defaultURI, defaultKey},
		"only sources":      {"x.sources", "Types: deb-src\nURIs: http://mirror.test/debian\nSuites: sid\nComponents: main\n", defaultURI, defaultKey},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "sources.list.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "sources.list.d", c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if m := findMirror(dir); m.uri != c.uri || m.key != c.key {
				t.Errorf("mirror %q signed by %q, want %q signed by %q", m.uri, m.key, c.uri, c.key)
			}
		})
	}
}

func TestFindMirrorInSourcesList(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte("deb http://mirror.test/debian bookworm main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m := findMirror(dir); m.uri != "http://mirror.test/debian" {
		t.Errorf("mirror %q, want the one of sources.list", m.uri)
	}
}
