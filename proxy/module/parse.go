package module

import "math"

// Atoi reads a non-negative decimal number; ok is false for anything else (ngx_string.c, ngx_atoi).
func Atoi(s string) (int, bool) {
	if s == "" {
		return 0, false
	}
	const cutoff, cutlim = math.MaxInt64 / 10, math.MaxInt64 % 10
	v := 0
	for i := 0; i < len(s); i++ {
		d := int(s[i]) - '0'
		if d < 0 || d > 9 || v >= cutoff && (v > cutoff || d > cutlim) {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// AtoFP reads a fixed-point number with at most point digits after the dot: AtoFP("10.5", 2) is 1050
// (ngx_string.c, ngx_atofp).
func AtoFP(s string, point int) (int, bool) {
	if s == "" {
		return 0, false
	}
	const cutoff, cutlim = math.MaxInt64 / 10, math.MaxInt64 % 10
	v, dot := 0, false
	for i := 0; i < len(s); i++ {
		if point == 0 {
			return 0, false
		}
		if s[i] == '.' {
			if dot {
				return 0, false
			}
			dot = true
			continue
		}
		d := int(s[i]) - '0'
		if d < 0 || d > 9 || v >= cutoff && (v > cutoff || d > cutlim) {
			return 0, false
		}
		v = v*10 + d
		if dot {
			point--
		}
	}
	for ; point > 0; point-- {
		if v > cutoff {
			return 0, false
		}
		v *= 10
	}
	return v, true
}

func scaled(s string, giga bool) (int64, bool) {
	if s == "" {
		return 0, false
	}
	scale := 1
	switch c := s[len(s)-1]; {
	case c == 'k' || c == 'K':
		scale = 1 << 10
	case c == 'm' || c == 'M':
		scale = 1 << 20
	case giga && (c == 'g' || c == 'G'):
		scale = 1 << 30
	}
	if scale > 1 {
		s = s[:len(s)-1]
	}
	v, ok := Atoi(s)
	if !ok || v > math.MaxInt64/scale {
		return 0, false
	}
	return int64(v * scale), true
}

// ParseSize reads a size in bytes with an optional k or m (ngx_parse.c, ngx_parse_size).
func ParseSize(s string) (int64, bool) { return scaled(s, false) }

// ParseOffset reads a size in bytes with an optional k, m or g (ngx_parse.c, ngx_parse_offset).
func ParseOffset(s string) (int64, bool) { return scaled(s, true) }

// units of a time, in their order: a text may name each once, the longer ones first.
const (
	unitStart = iota
	unitYear
	unitMonth
	unitWeek
	unitDay
	unitHour
	unitMin
	unitSec
	unitMsec
	unitLast
)

// ParseTime reads "1h 30m" and the like, in seconds when sec, else in milliseconds (where years
// and months are not units, a bare number is seconds) (ngx_parse.c, ngx_parse_time).
func ParseTime(s string, sec bool) (int64, bool) {
	const cutoff, cutlim = math.MaxInt64 / 10, math.MaxInt64 % 10
	var value, total int64
	valid := false
	step := unitMonth
	if sec {
		step = unitStart
	}
	for i := 0; i < len(s); {
		c := s[i]
		i++
		if c >= '0' && c <= '9' {
			d := int64(c - '0')
			if value >= cutoff && (value > cutoff || d > cutlim) {
				return 0, false
			}
			value = value*10 + d
			valid = true
			continue
		}
		var scale int64 = 1
		at, passed := 0, false // the unit, and whether its turn is over
		switch c {
		case 'y':
			at, passed, scale = unitYear, step > unitStart, 365*24*3600
		case 'M':
			at, passed, scale = unitMonth, step >= unitMonth, 30*24*3600
		case 'w':
			at, passed, scale = unitWeek, step >= unitWeek, 7*24*3600
		case 'd':
			at, passed, scale = unitDay, step >= unitDay, 24*3600
		case 'h':
			at, passed, scale = unitHour, step >= unitHour, 3600
		case 'm':
			if i < len(s) && s[i] == 's' {
				i++
				at, passed = unitMsec, sec || step >= unitMsec
			} else {
				at, passed, scale = unitMin, step >= unitMin, 60
			}
		case 's':
			at, passed = unitSec, step >= unitSec
		case ' ':
			at, passed = unitLast, step >= unitSec
		default:
			return 0, false
		}
		if passed {
			return 0, false
		}
		step = at
		max := math.MaxInt64 / scale
		if step != unitMsec && !sec {
			scale *= 1000
			max /= 1000
		}
		if value > max {
			return 0, false
		}
		value *= scale
		if total > math.MaxInt64-value {
			return 0, false
		}
		total += value
		value = 0
		for i < len(s) && s[i] == ' ' {
			i++
		}
	}
	if !valid {
		return 0, false
	}
	if !sec {
		if value > math.MaxInt64/1000 {
			return 0, false
		}
		value *= 1000
	}
	if total > math.MaxInt64-value {
		return 0, false
	}
	return total + value, true
}
