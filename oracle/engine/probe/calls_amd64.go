package probe

import "golang.org/x/sys/unix"

// pollCalls are the calls in which a server waits for its sockets.
var pollCalls = []int{
	unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_POLL, unix.SYS_PPOLL,
	unix.SYS_SELECT, unix.SYS_PSELECT6, unix.SYS_PAUSE,
}

// epollWait is the number of epoll_wait, where there is such a call.
const epollWait = unix.SYS_EPOLL_WAIT
