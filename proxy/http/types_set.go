package http

import (
	"maps"
	"slices"

	"nginxoracle/proxy/ascii"
	"nginxoracle/proxy/module"
)

// TypeSet is a set of content types (gzip_types and its likes); nil is unset.
type TypeSet struct {
	All    bool // "*"
	types  map[string]bool
	tabled bool // nginx has made its table
}

// NewTypeSet is a set of the given types, in lower case.
func NewTypeSet(types ...string) *TypeSet {
	s := &TypeSet{types: map[string]bool{}}
	for _, t := range types {
		s.types[t] = true
	}
	return s
}

// Has reports whether the response's content type is in the set (ngx_http_test_content_type).
func (s *TypeSet) Has(r *Request) bool {
	if s.All {
		return true
	}
	out := &r.HeadersOut
	if len(out.ContentType) == 0 {
		return false
	}
	if out.ContentTypeLow == nil {
		n := min(out.ContentTypeLen, len(out.ContentType))
		out.ContentTypeLow = ascii.AppendLower(r.Alloc(n)[:0], out.ContentType[:n])
	}
	return s.types[string(out.ContentTypeLow)]
}

// TypesSlot adds types to a set that begins with the default ones (ngx_http_types_slot).
func TypesSlot[T any](at func(*T) **TypeSet, def ...string) func(cf *module.Conf, cmd *module.Directive, conf any) error {
	return func(cf *module.Conf, cmd *module.Directive, conf any) error {
		f := at(conf.(*T))
		if *f == nil {
			*f = NewTypeSet(def...)
		} else if (*f).All {
			return nil
		}
		for _, a := range cf.Args[1:] {
			if a == "*" {
				(*f).All = true
				return nil
			}
			t := ascii.Lower(a)
			if _, dup := module.Same((*f).types, t); dup {
				cf.Warn(`duplicate MIME type "%s"`, t)
				continue
			}
			(*f).types[t] = true
		}
		return nil
	}
}

// MergeTypes takes the set of the level above, or the default, and says what nginx would say of its table
// (ngx_http_merge_types).
func MergeTypes(cf *module.Conf, conf **TypeSet, prev *TypeSet, def ...string) error {
	if *conf == nil {
		*conf = prev
		if prev == nil {
			*conf = NewTypeSet(def...)
		}
	}
	s := *conf
	if s.All || s.tabled {
		return nil
	}
	s.tabled = true
	return HashLimits{Name: "test_types_hash", Max: 2048, BucketSize: 64}.Check(cf, slices.Collect(maps.Keys(s.types)))
}
