package http_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/http"
	"nginxoracle/proxy/module"
	"nginxoracle/proxy/modules/core"
	"nginxoracle/proxy/modules/proxy"
	"nginxoracle/proxy/upstream"
)

// answerModule is a content handler of the tests: "answer CODE TEXT;".
var answerModule = &http.Module{Name: "answer"}

// panicking, when set, is called by "answer 200 panic".
var panicking func(r *http.Request)

var textPlain = []byte("text/plain")

func init() {
	answerModule.Directives = []module.Directive{{
		Name: "answer", Where: module.HTTPLoc, Args: module.Take2, Level: module.LocConf,
		Set: func(cf *module.Conf, cmd *module.Directive, _ any) error {
			code, _ := module.Atoi(cf.Args[1])
			text := []byte(cf.Args[2])
			http.ConfLoc(cf, core.Module).(*http.CoreLoc).Handler = func(r *http.Request) http.Rc {
				if code >= 300 {
					return http.Rc(code)
				}
				if panicking != nil && string(text) == "panic" {
					panicking(r)
				}
				return r.SendResponse(code, textPlain, text)
			}
			return nil
		},
	}}
	answerModule.Postconf = func(cf *module.Conf) error {
		// Content handlers of locations run in the content phase, which is there with any handler.
		cmcf := http.ConfMain(cf, core.Module).(*http.CoreMain)
		cmcf.Phases[http.ContentPhase] = append(cmcf.Phases[http.ContentPhase], func(*http.Request) http.Rc { return http.Declined })
		return nil
	}
	http.Modules = []*http.Module{
		core.Module, upstream.Module, proxy.Module, answerModule, composeModule, http.WriteFilterModule, http.HeaderFilterModule, http.ChunkedFilterModule,
		http.PostponeFilterModule, http.CopyFilterModule,
	}
	for i, m := range http.Modules {
		m.Index = i
	}
	http.BuildFilters()
}

type logMemory struct {
	mu    sync.Mutex
	lines []string
}

func (m *logMemory) WriteLine(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, string(b))
	return nil
}

func (m *logMemory) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.lines, "")
}

// readConf reads the inside of http { } and gives the handed-out listening sockets.
func readConf(t testing.TB, inside string) (*module.Cycle, *logMemory) {
	t.Helper()
	mem := &logMemory{}
	list := &elog.List{}
	list.Insert(&elog.Target{Level: elog.Info, W: mem})
	log := &elog.Log{Sink: list}
	sets := []*module.Set{{
		Name: "http", Type: module.CoreModule,
		Directives: []module.Directive{{
			Name: "http", Where: module.Main, Args: module.Block | module.NoArgs,
			Set: func(cf *module.Conf, cmd *module.Directive, _ any) error {
				_, err := http.Block(cf)
				return err
			},
		}},
	}}
	for _, m := range http.Modules {
		sets = append(sets, &module.Set{Name: m.Name, Type: module.HTTPModule, Directives: m.Directives, Conf: levelConf(m)})
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(name, []byte("http {\n"+inside+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cycle := &module.Cycle{Prefix: dir + "/", ConfPrefix: dir + "/", Log: log, NewLog: list, Sets: sets}
	cf := &module.Conf{Cycle: cycle, Type: module.CoreModule, Where: module.Main}
	if err := cf.ReadFile(name); err != nil {
		t.Fatalf("read %s: %v\n%s", name, err, mem)
	}
	return cycle, mem
}

func levelConf(m *http.Module) func(cf *module.Conf, cmd *module.Directive) any {
	return func(cf *module.Conf, cmd *module.Directive) any {
		ctx := cf.Ctx.(*http.ConfCtx)
		switch cmd.Level {
		case module.MainConf:
			return ctx.Main[m.Index]
		case module.SrvConf:
			return ctx.Srv[m.Index]
		case module.LocConf:
			return ctx.Loc[m.Index]
		}
		return nil
	}
}

// serve runs a configuration on a free port of the loopback and gives its address.
func serve(t testing.TB, inside string) (string, *logMemory) {
	t.Helper()
	cycle, mem := readConf(t, inside)
	sys, err := ev.NewEpoll(64)
	if err != nil {
		t.Fatal(err)
	}
	l := ev.NewLoop(sys, 64, cycle.Log)
	ls := cycle.Listen[0]
	a := ls.Addr
	a.Port = 0
	fd, err := sys.Socket(a)
	if err == nil {
		err = sys.Bind(fd, a)
	}
	if err == nil {
		err = sys.Listen(fd, 16)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, _ = sys.LocalAddr(fd)
	if err := l.Listen(&ev.Listener{FD: fd, Addr: a, Text: ls.Text, Handler: http.InitConnection, Data: ls.Servers, Log: cycle.Log}); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() { l.Run(); close(done) }()
	t.Cleanup(func() {
		l.Stop()
		<-done
		sys.Close(fd)
		sys.Free()
	})
	return a.Text(), mem
}

// talk sends text, half-closes and reads to the end.
func talk(t testing.TB, addr string, pieces ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Second))
	for _, p := range pieces {
		if _, err := c.Write([]byte(p)); err != nil {
			break
		}
	}
	c.(*net.TCPConn).CloseWrite()
	var b strings.Builder
	buf := make([]byte, 65536)
	for {
		n, err := c.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

const oneServer = `server { listen 127.0.0.1:8080; location / { answer 200 hello; } location /404 { answer 404 x; } }`

func TestPipelinedAndKept(t *testing.T) {
	addr, mem := serve(t, oneServer)
	got := talk(t, addr, "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /404 HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.0\r\n\r\n")
	for _, want := range []string{
		"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\nDate: ",
		"\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhelloHTTP/1.1 404 Not Found\r\n",
		"<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx/1.26.3</center>\r\n</body>\r\n</html>\r\nHTTP/1.1 200 OK\r\n",
		"\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want in it %q\nlog:\n%s", got, want, mem)
		}
	}
}
