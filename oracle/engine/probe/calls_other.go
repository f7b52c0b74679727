//go:build linux && !amd64

package probe

import "golang.org/x/sys/unix"

// pollCalls are the calls in which a server waits for its sockets.
var pollCalls = []int{
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL, unix.SYS_PSELECT6,
}

// epollWait is the number of epoll_wait, where there is such a call.
const epollWait = -1
