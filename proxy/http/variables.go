package http

import (
	"strings"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/module"
)

// Variables: declared while the configuration is read, indexed where they are used,
// and bound together when it is over (ngx_http_variables.c).

func coreMainOf(cf *module.Conf) *CoreMain { return cf.Ctx.(*ConfCtx).Main[0].(*CoreMain) }

// VarNull and VarTrue are the values of false and true conditions.
var (
	VarNull = VarValue{V: []byte{}, Valid: true}
	VarTrue = VarValue{V: []byte("1"), Valid: true}
)

// Set gives a value that was found.
func (v *VarValue) Set(b []byte) Rc {
	v.V, v.Valid, v.NoCacheable, v.NotFound = b, true, false, false
	return OK
}

// Missing says that there is no value.
func (v *VarValue) Missing() Rc {
	v.NotFound = true
	return OK
}

// AddVariable declares a variable, or gives the changeable one of that name again
// (ngx_http_add_variable). With VarPrefix the name is a family's beginning, and Get is
// handed the whole name as a string.
func AddVariable(cf *module.Conf, name string, flags int) (*Variable, error) {
	if name == "" {
		return nil, cf.Emerg(`invalid variable name "$"`)
	}
	cmcf := coreMainOf(cf)
	low := ascii.Lower(name)

	var v *Variable
	if flags&VarPrefix != 0 {
		for _, p := range cmcf.PrefixVariables {
			if p.Name == low {
				v = p
			}
		}
	} else {
		v = cmcf.varKeys[low]
	}
	if v != nil {
		if v.Flags&VarChangeable == 0 {
			return nil, cf.Emerg(`the duplicate "%s" variable`, name)
		}
		if flags&VarWeak == 0 {
			v.Flags &^= VarWeak
		}
		return v, nil
	}

	v = &Variable{Name: low, Flags: flags}
	if flags&VarPrefix != 0 {
		cmcf.PrefixVariables = append(cmcf.PrefixVariables, v)
		return v, nil
	}
	if cmcf.varKeys == nil {
		cmcf.varKeys = map[string]*Variable{}
	}
	cmcf.varKeys[low] = v
	return v, nil
}

// VariableIndex gives the place of a variable among those that are used by index; whether
// it exists is seen only when the whole configuration is read (ngx_http_get_variable_index).
func VariableIndex(cf *module.Conf, name string) (int, error) {
	if name == "" {
		return 0, cf.Emerg(`invalid variable name "$"`)
	}
	cmcf := coreMainOf(cf)
	low := ascii.Lower(name)
	if v := cmcf.varKeys[low]; v != nil && v.refused {
		return 0, cf.NotSupported("$" + name)
	}
	if i, ok := cmcf.varIndex[low]; ok {
		return i, nil
	}
	i := len(cmcf.Variables)
	cmcf.Variables = append(cmcf.Variables, &Variable{Name: low, Index: i})
	if cmcf.varIndex == nil {
		cmcf.varIndex = map[string]int{}
	}
	cmcf.varIndex[low] = i
	return i, nil
}

// prefixOf finds the family that a name belongs to. As in nginx, a longer family that is
// declared later wins only while the name is longer than the one found before.
func (cmcf *CoreMain) prefixOf(name string) *Variable {
	var found *Variable
	n := 0
	for _, p := range cmcf.PrefixVariables {
		if len(name) > n && strings.HasPrefix(name, p.Name) {
			found, n = p, len(p.Name)
		}
	}
	return found
}

// initVariables binds the indexed variables to the declared ones (ngx_http_variables_init_vars).
func initVariables(cf *module.Conf, cmcf *CoreMain) error {
	for i, v := range cmcf.Variables {
		if d := cmcf.varKeys[v.Name]; d != nil {
			d.Flags |= VarIndexed
			d.Index = i
			v.Get, v.Data, v.Flags = d.Get, d.Data, d.Flags
			if d.Get != nil && d.Flags&VarWeak == 0 {
				continue
			}
		}
		if p := cmcf.prefixOf(v.Name); p != nil {
			v.Get, v.Data, v.Flags = p.Get, v.Name, p.Flags
			continue
		}
		if v.Get == nil {
			cf.Log().Err(elog.Emerg, nil, `unknown "%s" variable`, v.Name)
			return module.ErrReported
		}
	}
	cmcf.VariablesHash = make(map[string]*Variable, len(cmcf.varKeys))
	for name, v := range cmcf.varKeys {
		if v.Flags&VarNoHash == 0 {
			cmcf.VariablesHash[name] = v
		}
	}
	return nil
}

// maxVarDepth bounds the evaluation of variables that need variables.
const maxVarDepth = 100

// IndexedVariable gives a variable's value, kept from before if there is one; nil when
// it cannot be had (ngx_http_get_indexed_variable).
func (r *Request) IndexedVariable(i int) *VarValue {
	vars := r.CoreMain().Variables
	if i >= len(vars) {
		r.Conn.Log.Err(elog.Alert, nil, "unknown variable index: %d", i)
		return nil
	}
	vv := &r.Variables[i]
	if vv.NotFound || vv.Valid {
		return vv
	}
	v := vars[i]
	if r.varDepth == maxVarDepth {
		r.Conn.Log.Err(elog.Error, nil, `cycle while evaluating variable "%s"`, v.Name)
		return nil
	}
	r.varDepth++
	rc := v.Get(r, vv, v.Data)
	r.varDepth--
	if rc != OK {
		vv.Valid, vv.NotFound = false, true
		return nil
	}
	if v.Flags&VarNoCacheable != 0 {
		vv.NoCacheable = true
	}
	return vv
}

// FlushedVariable gives a variable's value, made anew if it may have changed
// (ngx_http_get_flushed_variable).
func (r *Request) FlushedVariable(i int) *VarValue {
	if v := &r.Variables[i]; v.Valid || v.NotFound {
		if !v.NoCacheable {
			return v
		}
		v.Valid, v.NotFound = false, false
	}
	return r.IndexedVariable(i)
}

// NamedVariable gives a variable by its lower-case name; a name that nothing declares
// is a value that is not found (ngx_http_get_variable).
func (r *Request) NamedVariable(name string) *VarValue {
	cmcf := r.CoreMain()
	if v := cmcf.VariablesHash[name]; v != nil {
		if v.Flags&VarIndexed != 0 {
			return r.FlushedVariable(v.Index)
		}
		if r.varDepth == maxVarDepth {
			r.Conn.Log.Err(elog.Error, nil, `cycle while evaluating variable "%s"`, name)
			return nil
		}
		r.varDepth++
		vv := &VarValue{}
		rc := v.Get(r, vv, v.Data)
		r.varDepth--
		if rc != OK {
			return nil
		}
		return vv
	}
	vv := &VarValue{}
	if p := cmcf.prefixOf(name); p != nil {
		if p.Get(r, vv, name) != OK {
			return nil
		}
		return vv
	}
	vv.NotFound = true
	return vv
}

func (r *Request) flush(i int) {
	if v := &r.Variables[i]; v.NoCacheable {
		v.Valid, v.NotFound = false, false
	}
}

// flushAll forgets every value that may have changed (ngx_http_script_run).
func (r *Request) flushAll() {
	for i := range r.Variables {
		r.flush(i)
	}
}
