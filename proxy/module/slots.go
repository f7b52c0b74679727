package module

import (
	"strings"

	"nginxoracle/proxy/ascii"
)

// Generic setters, each for a field of T found by an accessor (ngx_conf_file.c, ngx_conf_set_*_slot).
// After a value is stored, a Post of the directive's row (PostFunc, Bounds, Deprecated) sees it.

// PostFunc checks or uses a value that a generic setter has just stored; field is the accessor's pointer.
type PostFunc func(cf *Conf, cmd *Directive, field any) error

// Bounds are the least and the greatest number allowed; High -1 is no limit
// (ngx_conf_file.c, ngx_conf_check_num_bounds).
type Bounds struct{ Low, High int }

// Deprecated warns that a directive has another name now (ngx_conf_file.c, ngx_conf_deprecated).
type Deprecated struct{ Old, New string }

// Keyval is a pair of words.
type Keyval struct{ Key, Value string }

type setter = func(cf *Conf, cmd *Directive, conf any) error

func post(cf *Conf, cmd *Directive, field any) error {
	switch p := cmd.Post.(type) {
	case PostFunc:
		return p(cf, cmd, field)
	case func(cf *Conf, cmd *Directive, field any) error:
		return p(cf, cmd, field)
	case Bounds:
		n := *field.(*int)
		switch {
		case n >= p.Low && (p.High == -1 || n <= p.High):
			return nil
		case p.High == -1:
			return cf.Emerg("value must be equal to or greater than %d", p.Low)
		}
		return cf.Emerg("value must be between %d and %d", p.Low, p.High)
	case Deprecated:
		cf.Warn(`the "%s" directive is deprecated, use the "%s" directive instead`, p.Old, p.New)
	}
	return nil
}

// FlagSlot stores 1 for on, 0 for off.
func FlagSlot[T any](at func(*T) *int) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if *f != Unset {
			return ErrDuplicate
		}
		switch v := CText(cf.Args[1]); {
		case ascii.EqualFold(v, "on"):
			*f = 1
		case ascii.EqualFold(v, "off"):
			*f = 0
		default:
			return cf.Emerg(`invalid value "%s" in "%s" directive, it must be "on" or "off"`, v, cmd.Name)
		}
		return post(cf, cmd, f)
	}
}

// NumSlot stores a non-negative number.
func NumSlot[T any](at func(*T) *int) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if *f != Unset {
			return ErrDuplicate
		}
		n, ok := Atoi(cf.Args[1])
		if !ok {
			return Text("invalid number")
		}
		*f = n
		return post(cf, cmd, f)
	}
}

// StrSlot stores a word.
func StrSlot[T any](at func(*T) *Str) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if f.Set {
			return ErrDuplicate
		}
		*f = Str{Set: true, V: cf.Args[1]}
		return post(cf, cmd, f)
	}
}

// StrArraySlot appends a word; the directive may be repeated.
func StrArraySlot[T any](at func(*T) *[]string) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		*f = append(*f, cf.Args[1])
		return post(cf, cmd, &(*f)[len(*f)-1])
	}
}

// KeyvalSlot appends two words; the directive may be repeated.
func KeyvalSlot[T any](at func(*T) *[]Keyval) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		*f = append(*f, Keyval{cf.Args[1], cf.Args[2]})
		return post(cf, cmd, &(*f)[len(*f)-1])
	}
}

func int64Slot[T any](at func(*T) *int64, parse func(string) (int64, bool)) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if *f != Unset {
			return ErrDuplicate
		}
		n, ok := parse(cf.Args[1])
		if !ok {
			return Text("invalid value")
		}
		*f = n
		return post(cf, cmd, f)
	}
}

// SizeSlot stores a size in bytes (k, m).
func SizeSlot[T any](at func(*T) *int64) setter { return int64Slot(at, ParseSize) }

// OffSlot stores a size in bytes (k, m, g).
func OffSlot[T any](at func(*T) *int64) setter { return int64Slot(at, ParseOffset) }

// MsecSlot stores a duration in milliseconds.
func MsecSlot[T any](at func(*T) *int64) setter {
	return int64Slot(at, func(s string) (int64, bool) { return ParseTime(s, false) })
}

// SecSlot stores a duration in seconds.
func SecSlot[T any](at func(*T) *int64) setter {
	return int64Slot(at, func(s string) (int64, bool) { return ParseTime(s, true) })
}

// BufsSlot stores a number and a size, neither zero; Num 0 is unset.
func BufsSlot[T any](at func(*T) *Bufs) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if f.Num != 0 {
			return ErrDuplicate
		}
		n, ok := Atoi(cf.Args[1])
		if !ok || n == 0 {
			return Text("invalid value")
		}
		size, ok := ParseSize(cf.Args[2])
		if !ok || size == 0 {
			return Text("invalid value")
		}
		*f = Bufs{Num: n, Size: size}
		return nil
	}
}

// EnumSlot stores the value of a word of the table; case does not matter.
func EnumSlot[T any](at func(*T) *int, table []Enum) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if *f != Unset {
			return ErrDuplicate
		}
		for _, e := range table {
			if ascii.EqualFold(e.Name, cf.Args[1]) {
				*f = e.Value
				return nil
			}
		}
		return cf.Emerg(`invalid value "%s"`, CText(cf.Args[1]))
	}
}

// BitmaskSlot adds the bits of each word; 0 is unset.
func BitmaskSlot[T any](at func(*T) *int, table []Enum) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
	words:
		for _, w := range cf.Args[1:] {
			for _, e := range table {
				if !ascii.EqualFold(e.Name, w) {
					continue
				}
				if *f&e.Value != 0 {
					cf.Warn(`duplicate value "%s"`, CText(w))
				} else {
					*f |= e.Value
				}
				continue words
			}
			return cf.Emerg(`invalid value "%s"`, CText(w))
		}
		return nil
	}
}

// AccessSlot stores the permissions "user:rw group:r all:r" (ngx_file.c, ngx_conf_set_access_slot).
func AccessSlot[T any](at func(*T) *int) setter {
	return func(cf *Conf, cmd *Directive, conf any) error {
		f := at(conf.(*T))
		if *f != Unset {
			return ErrDuplicate
		}
		mode, user := 0, 0o600
		for _, v := range cf.Args[1:] {
			who, what, _ := strings.Cut(v, ":")
			shift, ok := map[string]int{"user": 6, "group": 3, "all": 0}[who]
			right, ok2 := map[string]int{"rw": 6, "r": 4}[CText(what)]
			if who == "user" {
				user = 0
			}
			if !ok || !ok2 {
				*f = mode
				return cf.Emerg(`invalid value "%s"`, v)
			}
			mode |= right << shift
		}
		*f = mode | user
		return nil
	}
}
