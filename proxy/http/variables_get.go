package http

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// Values that are the same for every request.
var (
	nginxVersion = []byte("1.26.3")
	valHTTPS     = []byte("https")
	valHTTP      = []byte("http")
	valOn        = []byte("on")
	valQuestion  = []byte("?")
	valP         = []byte("p")
	valDot       = []byte(".")
	valOK        = []byte("OK")
	valUpgrade   = []byte("upgrade")
	valKeepAlive = []byte("keep-alive")
	valClose     = []byte("close")
	valChunked   = []byte("chunked")
)

// str gives the bytes of a text that outlives the request. Nothing writes into variables' values.
func (r *Request) str(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

func (r *Request) num(n int64) []byte { return strconv.AppendInt(r.Alloc(20)[:0], n, 10) }

func (r *Request) port(n int) []byte {
	if n <= 0 || n > 65535 {
		return []byte{}
	}
	return r.num(int64(n))
}

// msec prints milliseconds as seconds with three digits.
func (r *Request) msec(ms int64) []byte {
	b := strconv.AppendInt(r.Alloc(24)[:0], ms/1000, 10)
	ms %= 1000
	return append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

func varContentLength(r *Request, v *VarValue, _ any) Rc {
	h := &r.HeadersIn
	switch {
	case h.ContentLength != nil:
		return v.Set(h.ContentLength.Value)
	case r.ReadingBody:
		v.NoCacheable = true
		return v.Missing()
	case h.ContentLengthN >= 0:
		return v.Set(r.num(h.ContentLengthN))
	case h.Chunked:
		v.NoCacheable = true
	}
	return v.Missing()
}

func varHost(r *Request) []byte {
	if len(r.HeadersIn.Server) > 0 {
		return r.HeadersIn.Server
	}
	return r.str(r.CoreSrv().ServerName)
}

func varBinaryRemoteAddr(r *Request) []byte {
	switch a := &r.Conn.Peer; a.Family {
	case syscall.AF_INET6:
		return a.IP[:]
	case syscall.AF_UNIX:
		return r.str(r.Conn.PeerText)
	default:
		return a.IP[:4]
	}
}

func varServerAddr(r *Request, v *VarValue, _ any) Rc {
	a, err := r.Conn.LocalAddr()
	if err != nil {
		return Error
	}
	return v.Set(a.AppendIP(r.Alloc(64)[:0]))
}

func varServerPort(r *Request, v *VarValue, _ any) Rc {
	a, err := r.Conn.LocalAddr()
	if err != nil {
		return Error
	}
	return v.Set(r.port(a.Port))
}

func varScheme(r *Request) []byte {
	if r.HC.SSL {
		return valHTTPS
	}
	return valHTTP
}

func varHTTPS(r *Request, v *VarValue, _ any) Rc {
	if r.HC.SSL {
		return v.Set(valOn)
	}
	return no(r, v, nil)
}

// varRequestLine is the first line as it came, also one that could not be understood.
func varRequestLine(r *Request, v *VarValue, _ any) Rc {
	if r.RequestLine == nil {
		r.RequestLine = r.rawRequestLine()
	}
	if r.RequestLine == nil {
		return v.Missing()
	}
	return v.Set(r.RequestLine)
}

func (r *Request) documentRoot() (path []byte, ok bool) {
	if r.Core.RootValues == nil {
		return r.str(r.Core.Root.V), true
	}
	return r.root(0)
}

func varDocumentRoot(r *Request, v *VarValue, _ any) Rc {
	path, ok := r.documentRoot()
	if !ok {
		return Error
	}
	return v.Set(path)
}

func varRealpathRoot(r *Request, v *VarValue, _ any) Rc {
	root, ok := r.documentRoot()
	if !ok {
		return Error
	}
	path := string(root)
	if r.Core.RootText != "" && r.Core.RootValues == nil { // of "root /" nginx counts no byte and looks at one
		path = r.Core.RootText
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if pe, ok := err.(*os.PathError); ok {
			err = pe.Err
		}
		r.Conn.Log.Err(elog.Crit, err, `realpath() "%s" failed`, path)
		return Error
	}
	return v.Set([]byte(real))
}

func setArgs(r *Request, v *VarValue, _ any) {
	r.Args = v.V
	r.ValidUnparsedURI = false
}

func varIsArgs(r *Request, v *VarValue, _ any) Rc {
	if len(r.Args) == 0 {
		return no(r, v, nil)
	}
	return v.Set(valQuestion)
}

func varRequestFilename(r *Request, v *VarValue, _ any) Rc {
	path, _, ok := r.MapURIToPath(0)
	if !ok {
		return Error
	}
	return v.Set(path)
}

func varRemoteUser(r *Request, v *VarValue, _ any) Rc {
	if r.AuthBasicUser() != OK {
		return v.Missing()
	}
	return v.Set(r.HeadersIn.User)
}

func varPipe(r *Request) []byte {
	if r.Pipeline {
		return valP
	}
	return valDot
}

func varRequestCompletion(r *Request, v *VarValue, _ any) Rc {
	if r.RequestComplete {
		return v.Set(valOK)
	}
	return no(r, v, nil)
}

func varRequestBody(r *Request, v *VarValue, _ any) Rc {
	rb := r.Body
	if rb == nil || rb.Bufs == nil || rb.TempFile != nil {
		return v.Missing()
	}
	if rb.Bufs.Next == nil {
		return v.Set(orEmpty(rb.Bufs.Buf.Data))
	}
	n := 0
	for cl := rb.Bufs; cl != nil; cl = cl.Next {
		n += len(cl.Buf.Data)
	}
	b := r.Alloc(n)[:0]
	for cl := rb.Bufs; cl != nil; cl = cl.Next {
		b = append(b, cl.Buf.Data...)
	}
	return v.Set(b)
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func varRequestBodyFile(r *Request, v *VarValue, _ any) Rc {
	if r.Body == nil || r.Body.TempFile == nil {
		return v.Missing()
	}
	return v.Set(r.Body.TempFile.File.Name)
}

func varRequestTime(r *Request) []byte {
	sec, msec := r.Conn.Loop.Now()
	return r.msec(max((sec-r.StartSec)*1000+int64(msec-r.StartMsec), 0))
}

func varConnectionTime(r *Request) []byte {
	return r.msec(max(r.Conn.Loop.Mono()-r.Conn.StartMs, 0))
}

func varMsec(r *Request) []byte {
	sec, msec := r.Conn.Loop.Now()
	return r.msec(sec*1000 + int64(msec))
}

func varRequestID(r *Request) []byte {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.AppendEncode(r.Alloc(32)[:0], raw[:])
}

func varStatus(r *Request) []byte {
	n := r.ErrStatus
	switch {
	case n != 0:
	case r.HeadersOut.Status != 0:
		n = r.HeadersOut.Status
	case r.Version == HTTP9:
		n = 9
	}
	b := r.Alloc(20)[:0]
	if n < 100 {
		b = append(b, '0')
	}
	if n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

func varPid(r *Request) []byte { return r.num(int64(os.Getpid())) }

func varTCPInfo(r *Request, v *VarValue, data any) Rc {
	info, ok := ev.TCPInfo(r.Conn.FD)
	if !ok {
		return v.Missing()
	}
	return v.Set(r.num(int64(info[data.(int)])))
}

func varSentContentType(r *Request, v *VarValue, _ any) Rc {
	if len(r.HeadersOut.ContentType) == 0 {
		return v.Missing()
	}
	return v.Set(r.HeadersOut.ContentType)
}

func varSentContentLength(r *Request, v *VarValue, _ any) Rc {
	switch h := &r.HeadersOut; {
	case h.ContentLength != nil:
		return v.Set(h.ContentLength.Value)
	case h.ContentLengthN >= 0:
		return v.Set(r.num(h.ContentLengthN))
	}
	return v.Missing()
}

func varSentLocation(r *Request, v *VarValue, _ any) Rc {
	if h := r.HeadersOut.Location; h != nil {
		return v.Set(h.Value)
	}
	return UnknownHeader(r, v, "sent_http_location", r.HeadersOut.Headers, len("sent_http_"))
}

func varSentLastModified(r *Request, v *VarValue, _ any) Rc {
	switch h := &r.HeadersOut; {
	case h.LastModified != nil:
		return v.Set(h.LastModified.Value)
	case h.LastModifiedTime >= 0:
		return v.Set(ev.HTTPTime(r.Alloc(29)[:0], h.LastModifiedTime))
	}
	return v.Missing()
}

func varSentConnection(r *Request) []byte {
	switch {
	case r.HeadersOut.Status == 101:
		return valUpgrade
	case r.KeepAlive:
		return valKeepAlive
	}
	return valClose
}

func varSentKeepAlive(r *Request, v *VarValue, _ any) Rc {
	if !r.KeepAlive || r.Core.KeepaliveHeader == 0 {
		return v.Missing()
	}
	b := append(r.Alloc(32)[:0], "timeout="...)
	return v.Set(strconv.AppendInt(b, r.Core.KeepaliveHeader, 10))
}

func varSentTransferEncoding(r *Request, v *VarValue, _ any) Rc {
	if r.Chunked {
		return v.Set(valChunked)
	}
	return v.Missing()
}

func setLimitRate(r *Request, v *VarValue, _ any) {
	n, ok := module.ParseSize(string(v.V))
	if !ok {
		r.Conn.Log.Err(elog.Error, nil, `invalid $limit_rate "%s"`, v.V)
		return
	}
	r.LimitRate, r.LimitRateSet = n, true
}

func varUnknownIn(r *Request, v *VarValue, data any) Rc {
	return UnknownHeader(r, v, data.(string), r.HeadersIn.Headers, len("http_"))
}

func varUnknownOut(r *Request, v *VarValue, data any) Rc {
	return UnknownHeader(r, v, data.(string), r.HeadersOut.Headers, len("sent_http_"))
}

func varUnknownTrailer(r *Request, v *VarValue, data any) Rc {
	return UnknownHeader(r, v, data.(string), r.HeadersOut.Trailers, len("sent_trailer_"))
}

// UnknownHeader gives all fields of a list whose name is a variable's after its prefix,
// joined by ", " (ngx_http_variable_unknown_header).
func UnknownHeader(r *Request, v *VarValue, name string, list []*Header, prefix int) Rc {
	name = name[prefix:]
	var first *Header
	n, count := 0, 0
	for _, h := range list {
		if h.Hash != 0 && sameName(h.Key, name) {
			if first == nil {
				first = h
			}
			n += len(h.Value) + 2
			count++
		}
	}
	if count == 0 {
		return v.Missing()
	}
	if count == 1 {
		return v.Set(orEmpty(first.Value))
	}
	b := r.Alloc(n)[:0]
	for _, h := range list {
		if h.Hash != 0 && sameName(h.Key, name) {
			if len(b) > 0 || h != first {
				b = append(b, ", "...)
			}
			b = append(b, h.Value...)
		}
	}
	return v.Set(b)
}

// sameName compares a field's name with a variable's: in lower case, "_" for "-".
func sameName(key []byte, name string) bool {
	if len(key) != len(name) {
		return false
	}
	for i, ch := range key {
		if ch >= 'A' && ch <= 'Z' {
			ch |= 0x20
		} else if ch == '-' {
			ch = '_'
		}
		if name[i] != ch {
			return false
		}
	}
	return true
}

func varCookie(r *Request, v *VarValue, data any) Rc {
	name := data.(string)[len("cookie_"):]
	if b, ok := CookieValue(r.HeadersIn.Cookie, name); ok {
		return v.Set(b)
	}
	return v.Missing()
}

func varArg(r *Request, v *VarValue, data any) Rc {
	name := data.(string)[len("arg_"):]
	if name == "" {
		return v.Missing()
	}
	if b, ok := r.Arg(name); ok {
		return v.Set(b)
	}
	return v.Missing()
}
