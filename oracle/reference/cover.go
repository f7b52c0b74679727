package reference

import (
	"fmt"
	"os"
	"slices"

	"nginxoracle/oracle/engine"
)

// coverSuffix names the coverage build beside a candidate's program: bin/proxy-cover.
const coverSuffix = "-cover"

// Cover is the candidate built with Go's coverage counters, which it writes into a folder of its
// cell when it ends. ok is false, and why tells the reason, where there is no such build beside the
// candidate's program, or one that is older than it and so may be of other source.
func Cover(candidate engine.Options) (o engine.Options, why string, ok bool) {
	o = candidate
	if o.Target.Binary == "" {
		return o, "the candidate is an image's program", false
	}
	plain, err := os.Stat(o.Target.Binary)
	if err != nil {
		return o, err.Error(), false
	}
	o.Target.Binary += coverSuffix
	st, err := os.Stat(o.Target.Binary)
	switch {
	case err != nil:
		return o, "no coverage build (make bin/proxy-cover)", false
	case st.ModTime().Before(plain.ModTime()):
		return o, fmt.Sprintf("%s is older than the candidate (make bin/proxy-cover)", o.Target.Binary), false
	}
	o.Target.Name += coverSuffix
	o.Target.Env = append(slices.Clone(o.Target.Env), "GOCOVERDIR="+engine.AsideDir)
	return o, "", true
}
