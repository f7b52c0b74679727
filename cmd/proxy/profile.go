//go:build profile

package main

import (
	"os"
	"runtime/pprof"

	"nginxoracle/proxy/server"
)

// Built with -tags profile, the proxy leaves a profile of its run in the folder $PROXY_PROFILE when it ends: `make pgo`.
func init() {
	f, err := os.CreateTemp(os.Getenv("PROXY_PROFILE"), "cpu-*.pprof")
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		os.Stderr.WriteString("profile: " + err.Error() + "\n")
		os.Exit(1)
	}
	server.Exit = func(code int) {
		pprof.StopCPUProfile()
		if f.Close() != nil {
			code = 1
		}
		os.Exit(code)
	}
}
