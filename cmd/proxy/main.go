// Command proxy is an HTTP server and reverse proxy that behaves as nginx 1.26.3 does, to the byte, in
// what it supports, and refuses the rest. Its command line is nginx's.
// The runtime keeps no descriptors of control groups open: what is open is what nginx would have open.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"os"
	"runtime"

	"nginxoracle/proxy/server"
)

// The master keeps the first thread, whose rights are the process's as others see them; workers give
// up theirs on threads of their own.
func init() { runtime.LockOSThread() }

func main() { server.Exit(server.Main(os.Args[1:])) }
