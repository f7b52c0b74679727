package ev

import "time"

// dates are the texts of the present second, made when first asked for (core/ngx_times.c).
type dates struct {
	httpSec, logSec, isoSec int64
	http, log, iso          []byte
}

// HTTPTime appends an IMF-fixdate, in GMT, from 1970 to 9999 (RFC 9110, 5.6.7; ngx_http_time,
// ngx_gmtime).
func HTTPTime(b []byte, sec int64) []byte {
	t := time.Unix(min(max(sec, 0), 253402300799), 0).UTC()
	year, month, day := t.Date()
	hour, min, s := t.Clock()
	two := func(b []byte, n int, end byte) []byte { return append(b, byte('0'+n/10), byte('0'+n%10), end) }
	b = append(append(b, days[3*int(t.Weekday()):][:3]...), ", "...)
	b = two(b, day, ' ')
	b = append(append(b, months[3*(int(month)-1):][:3]...), ' ')
	b = append(b, byte('0'+year/1000), byte('0'+year/100%10))
	b = two(b, year%100, ' ')
	b = two(b, hour, ':')
	b = two(b, min, ':')
	return append(two(b, s, ' '), "GMT"...)
}

const (
	days   = "SunMonTueWedThuFriSat"
	months = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// HTTPDate is the Date of the present second; do not keep it beyond the turn.
func (l *Loop) HTTPDate() []byte {
	if l.dates.http == nil || l.dates.httpSec != l.sec {
		l.dates.httpSec = l.sec
		l.dates.http = HTTPTime(l.dates.http[:0], l.sec)
	}
	return l.dates.http
}

// LogTime is "28/Sep/1970:12:00:00 +0600", local.
func (l *Loop) LogTime() []byte {
	if l.dates.log == nil || l.dates.logSec != l.sec {
		l.dates.logSec = l.sec
		l.dates.log = time.Unix(l.sec, 0).AppendFormat(l.dates.log[:0], "02/Jan/2006:15:04:05 -0700")
	}
	return l.dates.log
}

// ISOTime is "1970-09-28T12:00:00+06:00", local.
func (l *Loop) ISOTime() []byte {
	if l.dates.iso == nil || l.dates.isoSec != l.sec {
		l.dates.isoSec = l.sec
		l.dates.iso = time.Unix(l.sec, 0).AppendFormat(l.dates.iso[:0], "2006-01-02T15:04:05-07:00")
	}
	return l.dates.iso
}
