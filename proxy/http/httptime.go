package http

// ParseHTTPTime reads the three forms of RFC 9110, 5.6.7 as leniently as nginx does: seconds since
// 1970, or -1 (nginx: ngx_parse_http_time).
func ParseHTTPTime(s []byte) int64 {
	const (
		rfc822 = iota + 1 // Tue, 10 Nov 2002 23:50:13
		rfc850            // Tuesday, 10-Dec-02 23:50:13
		isoc              // Tue Dec 10 23:50:13 2002
	)
	end := len(s)
	at := func(i int) byte {
		if i < end {
			return s[i]
		}
		return 0
	}
	bad := false
	// number reads n digits at i.
	number := func(i, n int) (v uint64) {
		for ; n > 0; n-- {
			c := at(i)
			if c < '0' || c > '9' {
				bad = true
				return 0
			}
			v = v*10 + uint64(c-'0')
			i++
		}
		return v
	}

	form := 0
	p := 0
	for ; p < end && s[p] != ','; p++ {
		if s[p] == ' ' {
			form = isoc
			break
		}
	}
	for p++; p < end && s[p] == ' '; p++ {
	}
	if end-p < 18 {
		return -1
	}

	var day, year uint64
	if form != isoc {
		if day = number(p, 2); bad {
			return -1
		}
		p += 2
		switch s[p] {
		case ' ':
			if end-p < 18 {
				return -1
			}
			form = rfc822
		case '-':
			form = rfc850
		default:
			return -1
		}
		p++
	}

	month := monthOf(s[p], at(p+1), at(p+2))
	if month < 0 {
		return -1
	}
	p += 3
	if form == rfc822 && at(p) != ' ' || form == rfc850 && at(p) != '-' {
		return -1
	}
	p++

	switch form {
	case rfc822:
		year = number(p, 4)
		p += 4
	case rfc850:
		if year = number(p, 2); year < 70 {
			year += 2000
		} else {
			year += 1900
		}
		p += 2
	case isoc:
		if at(p) == ' ' {
			p++
		}
		day = number(p, 1)
		p++
		if at(p) != ' ' {
			day = day*10 + number(p, 1)
			p++
		}
		if end-p < 14 {
			return -1
		}
	}
	if bad || at(p) != ' ' || at(p+3) != ':' || at(p+6) != ':' {
		return -1
	}
	hour, minute, sec := number(p+1, 2), number(p+4, 2), number(p+7, 2)
	if form == isoc {
		if at(p+9) != ' ' {
			return -1
		}
		year = number(p+10, 4)
	}
	if bad || hour > 23 || minute > 59 || sec > 59 {
		return -1
	}
	if day == 29 && month == 1 {
		if year&3 != 0 || year%100 == 0 && year%400 != 0 {
			return -1
		}
	} else if day > daysOf[month] {
		return -1
	}

	// The year begins with March, so that the leap day is its last; unsigned as in nginx, where
	// the year 0 wraps around.
	if month--; month <= 0 {
		month += 12
		year--
	}
	days := 365*year + year/4 - year/100 + year/400 + uint64(367*month/12-30) + day - 1 - 719527 + 31 + 28
	return int64(days*86400 + hour*3600 + minute*60 + sec)
}

var daysOf = [12]uint64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// monthOf tells a month, from 0, by as few letters of its name as nginx looks at; -1 for none.
func monthOf(a, b, c byte) int {
	choose := func(first bool, x, y int) int {
		if first {
			return x
		}
		return y
	}
	switch a {
	case 'J':
		return choose(b == 'a', 0, choose(c == 'n', 5, 6))
	case 'F':
		return 1
	case 'M':
		return choose(c == 'r', 2, 4)
	case 'A':
		return choose(b == 'p', 3, 7)
	case 'S':
		return 8
	case 'O':
		return 9
	case 'N':
		return 10
	case 'D':
		return 11
	}
	return -1
}
