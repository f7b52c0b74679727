package parse

// ComplexURI rewrites the path of a parsed line into dst[:0]: percent-decoded, dot segments
// removed, slashes merged when asked for, cut before "?" and "#". The path is at most
// URIEnd-URIStart+1 bytes, so a dst of that capacity is never outgrown. extStart is the offset
// of the extension in uri, argsStart that of the arguments in buf, -1 = none; l.ArgsStart,
// l.ArgsEnd (a "#" ends the arguments), l.Quoted and l.Plus are brought up to date.
// The result is OK or InvalidRequest.
// RFC 3986, sections 2.1 and 5.2.4; nginx: ngx_http_parse_complex_uri.
func ComplexURI(dst []byte, l *Line, buf []byte, mergeSlashes bool) (uri []byte, extStart, argsStart int, res Result) {
	const (
		usualState = iota
		slash
		dot
		dotDot
	)
	u := dst[:0]
	ext := -1
	state := usualState
	l.URIExt, l.ArgsStart = -1, -1
	if l.EmptyPath {
		u = append(u, '/')
	}

loop:
	for p := l.URIStart; p < l.URIEnd; p++ {
		ch := buf[p]
		if usual[ch] {
			state = usualState
			u = append(u, ch)
			continue
		}

		if ch == '%' {
			if p+2 >= l.URIEnd {
				l.Quoted = true
				return u, -1, -1, InvalidRequest
			}
			hi, ok1 := hexDigit(buf[p+1])
			lo, ok2 := hexDigit(buf[p+2])
			l.Quoted = true
			if !ok1 || !ok2 {
				return u, -1, -1, InvalidRequest
			}
			p += 2
			ch = hi<<4 | lo
			switch ch {
			case 0:
				return u, -1, -1, InvalidRequest
			case '%', '#', '?':
				state = usualState
				u = append(u, ch)
				continue
			}
		}

		switch ch {
		case '?', '#': // never decoded ones
			switch state {
			case dot:
				u = u[:len(u)-1]
			case dotDot:
				if u = dropSegment(u); u == nil {
					return dst, -1, -1, InvalidRequest
				}
			}
			state = usualState
			if ch == '?' {
				l.ArgsStart = p + 1
			}
			break loop
		case '/':
			switch state {
			case usualState:
				ext = -1
				u = append(u, ch)
			case slash:
				if !mergeSlashes {
					u = append(u, ch)
				}
			case dot:
				u = u[:len(u)-1]
			case dotDot:
				if u = dropSegment(u); u == nil {
					return dst, -1, -1, InvalidRequest
				}
			}
			state = slash
		case '.':
			u = append(u, ch)
			switch state {
			case usualState:
				ext = len(u)
			case slash:
				state = dot
			case dot:
				state = dotDot
			case dotDot:
				state = usualState
			}
		default:
			if ch == '+' {
				l.Plus = true
			}
			state = usualState
			u = append(u, ch)
		}
	}

	switch state {
	case dot:
		u = u[:len(u)-1]
	case dotDot:
		if u = dropSegment(u); u == nil {
			return dst, -1, -1, InvalidRequest
		}
	}
	l.ArgsEnd = l.URIEnd
	if l.ArgsStart >= 0 {
		for i := l.ArgsStart; i < l.URIEnd; i++ {
			if buf[i] == '#' {
				l.ArgsEnd = i
				break
			}
		}
	}
	return u, ext, l.ArgsStart, OK
}

// dropSegment removes the segment before the "/.." that ends u; nil when there is none.
func dropSegment(u []byte) []byte {
	for i := len(u) - 4; i >= 0; i-- {
		if u[i] == '/' {
			return u[:i+1]
		}
	}
	return nil
}

// UnsafeURI checks a URI that comes from an upstream or from SSI, and takes it apart: path is
// uri without arguments, decoded into dst[:0] when it has a "%". Not ok: it is empty, or
// leads upwards, or holds a NUL; path is then what the error log calls unsafe
// (nginx: ngx_http_parse_unsafe_uri).
func UnsafeURI(dst, uri []byte) (path, args []byte, ok bool) {
	if len(uri) == 0 || uri[0] == '?' || startsUp(uri) {
		return uri, nil, false
	}

	path = uri
	quoted := false
scan:
	for i, ch := range uri {
		switch {
		case ch == '%':
			quoted = true
		case ch == '?':
			path, args = uri[:i], uri[i+1:]
			break scan
		case ch == 0, ch == '/' && startsUp(uri[i+1:]):
			return uri, nil, false
		}
	}
	if !quoted {
		return path, args, true
	}

	path, _ = Unescape(dst[:0], path, UnescapeAll)
	if startsUp(path) {
		return path, args, false
	}
	for i, ch := range path {
		if ch == 0 || ch == '/' && startsUp(path[i+1:]) {
			return path, args, false
		}
	}
	return path, args, true
}

// startsUp reports that s is ".." or begins with "../".
func startsUp(s []byte) bool {
	return len(s) >= 2 && s[0] == '.' && s[1] == '.' && (len(s) == 2 || s[2] == '/')
}
