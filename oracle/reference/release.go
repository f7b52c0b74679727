// Package reference finds the real nginx that cells run: an image, a program on
// this machine, or Debian's packages, fetched into a cache folder and never
// installed. It also turns the names that people give to targets into what a
// cell needs.
package reference

import (
	"fmt"
	"strings"
)

// Version is the reference's version: a release's first two numbers.
const Version = "1.26"

// release is a version of nginx and where Debian has it.
type release struct {
	version  string
	suite    string
	packages []string // nginx and the libraries that it needs (libgcc: to end a thread); the result is tried before it is used
}

// releases are the versions that can be had from Debian's packages.
var releases = []release{
	{"1.22", "bookworm", []string{"nginx", "nginx-common", "libc6", "libcrypt1", "libpcre2-8-0", "libssl3", "zlib1g", "libgcc-s1"}},
	{"1.26", "trixie", []string{"nginx", "nginx-common", "libc6", "libcrypt1", "libpcre2-8-0", "libssl3t64", "zlib1g", "libzstd1", "libgcc-s1"}},
	{"1.30", "sid", []string{"nginx", "nginx-common", "libc6", "libcrypt1", "libpcre2-8-0", "libssl3t64", "zlib1g", "libzstd1", "libgcc-s1"}},
}

func releaseOf(version string) (release, error) {
	var have []string
	for _, r := range releases {
		if version == r.version || strings.HasPrefix(version, r.version+".") {
			return r, nil
		}
		have = append(have, r.version)
	}
	return release{}, fmt.Errorf("nginx %s is not among the versions that Debian's packages give (%s)",
		version, strings.Join(have, ", "))
}

// Packaged tells why a version of nginx cannot be had as Debian's packages, which gives no other.
func Packaged(version string) error {
	_, err := releaseOf(version)
	return err
}
