package http

import (
	"testing"

	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// scriptRequest is a request with its variables, read from no configuration.
func scriptRequest(t testing.TB) (*module.Conf, *CoreMain, func() *Request) {
	cm := &CoreMain{}
	cf := &module.Conf{Cycle: &module.Cycle{Log: &elog.Log{}}, Ctx: &ConfCtx{Main: []any{cm}}}
	if err := AddCoreVariables(cf); err != nil {
		t.Fatal(err)
	}
	r := &Request{pool: &pool{}, MainConf: []any{cm}, Conn: &ev.Conn{Log: &elog.Log{}}}
	return cf, cm, func() *Request {
		if err := initVariables(cf, cm); err != nil {
			t.Fatal(err)
		}
		r.Main = r
		r.Variables = make([]VarValue, len(cm.Variables))
		r.URI, r.Args, r.UnparsedURI = []byte("/a b"), []byte("a=1&b=2"), []byte("/a%20b?a=1&b=2")
		return r
	}
}

func TestComplex(t *testing.T) {
	cf, _, begin := scriptRequest(t)
	texts := map[string]string{
		"plain": "plain", "$uri": "/a b", "x$arg_a-${arg_b}y": "x1-2y", "$is_args$args": "?a=1&b=2",
		"$arg_none.": ".", "$1": "b", "[$2]": "[]", "$http_x": "",
	}
	values := map[string]*ComplexValue{}
	for text := range texts {
		v, err := CompileComplexValue(cf, text)
		if err != nil {
			t.Fatal(err)
		}
		values[text] = v
	}
	r := begin()
	r.Captures, r.CapturesData = []int{0, 3, 1, 2}, []byte("abc")
	for text, want := range texts {
		if got, rc := r.Complex(values[text]); rc != OK || string(got) != want {
			t.Errorf("%s: %q %d, want %q", text, got, rc, want)
		}
	}
}

func TestCaptureEscapes(t *testing.T) {
	cf, _, begin := scriptRequest(t)
	s, err := CompileScript(cf, "/x/$1?y=$1", true)
	if err != nil {
		t.Fatal(err)
	}
	r := begin()
	r.QuotedURI = true
	r.Captures, r.CapturesData = []int{0, 3, 0, 3}, []byte("a+b")
	st := ScriptState{ArgsAt: -1}
	n := s.Len(r, st, false)
	b, ok := s.Append(r, nil, n, &st, false)
	// The "?" is counted but not written: it is where the URI ends.
	if !ok || string(b) != "/x/a+by=a%2Bb" || n != len(b)+1 || st.ArgsAt != len("/x/a+b") {
		t.Errorf("%q of %d, arguments at %d, ok %v", b, n, st.ArgsAt, ok)
	}
}

func TestTextThatGrows(t *testing.T) {
	cf, _, begin := scriptRequest(t)
	grow, err := AddVariable(cf, "grow", VarChangeable)
	if err != nil {
		t.Fatal(err)
	}
	grow.Get = func(r *Request, v *VarValue, _ any) Rc {
		r.Captures, r.CapturesData = []int{0, 6, 0, 6}, []byte("longer")
		return v.Set([]byte("g"))
	}
	v, err := CompileComplexValue(cf, "$1$grow")
	if err != nil {
		t.Fatal(err)
	}
	r := begin()
	r.Captures, r.CapturesData = []int{0, 1, 0, 1}, []byte("s")
	if b, rc := r.Complex(v); rc != Error {
		t.Errorf("%q, want an error: the capture is longer in the second pass", b)
	}
}

func TestComplexAllocatesNothing(t *testing.T) {
	cf, _, begin := scriptRequest(t)
	v, err := CompileComplexValue(cf, "$uri $arg_b $request_uri $scheme")
	if err != nil {
		t.Fatal(err)
	}
	r := begin()
	r.HC = &Connection{}
	run := func() {
		clear(r.Variables)
		r.Complex(v)
		r.pool.reset()
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("a text with variables allocates %v times", n)
	}
}

func TestVariableDiagnostics(t *testing.T) {
	cf, cm, _ := scriptRequest(t)
	if _, err := AddVariable(cf, "URI", VarChangeable); err == nil {
		t.Error("a variable of the core can be declared again")
	}
	if _, err := AddVariable(cf, "mine", VarChangeable|VarWeak); err != nil {
		t.Error(err)
	}
	if v, err := AddVariable(cf, "Mine", VarChangeable); err != nil || v.Flags&VarWeak != 0 {
		t.Error("a weak variable does not become strong", err)
	}
	if _, err := VariableIndex(cf, "nobody"); err != nil {
		t.Error(err)
	}
	if err := initVariables(cf, cm); err == nil {
		t.Error("a variable that nothing declares is taken")
	}
}
