// Command oracle runs cases on real nginx and on a candidate and compares
// everything that can be seen. See docs/ for its pages.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nginxoracle/oracle/engine"
	"nginxoracle/oracle/exit"
)

func main() {
	engine.Agent()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newRoot().ExecuteContext(ctx)
	code := exit.Of(err)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, lastLine(ctx, code, "oracle: "+err.Error()))
	}
	stop()
	os.Exit(int(code))
}
