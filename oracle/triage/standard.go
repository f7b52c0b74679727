package triage

import (
	"regexp"
	"strings"
)

// Reading is a place in a standard that speaks of a difference.
type Reading struct {
	About string // a core, a header's name or a directive it is about
	Where string // "RFC 9112, section 6.1"
	Says  string // what is to be found there
}

// readings are tried in order on a signature's core and on the bytes around a
// difference; the RFC numbers are those of HTTP's current standards (2022).
var readings = []struct {
	on   *regexp.Regexp
	read Reading
}{
	{regexp.MustCompile(`(?i)transfer-encoding|chunked`), Reading{"Transfer-Encoding", "RFC 9112, section 6.1 and 7.1", "transfer codings, chunked; with Content-Length beside it: section 6.3"}},
	{regexp.MustCompile(`(?i)content-length`), Reading{"Content-Length", "RFC 9110, section 8.6; RFC 9112, section 6.3", "the length of a body; what a repeated or wrong one means"}},
	{regexp.MustCompile(`(?i)\bhost\b`), Reading{"Host", "RFC 9110, section 7.2; RFC 9112, section 3.2", "one Host field in a request of HTTP/1.1, else 400"}},
	{regexp.MustCompile(`(?i)if-(none-)?match|etag`), Reading{"ETag, If-Match, If-None-Match", "RFC 9110, section 8.8.3, 13.1.1, 13.1.2 and 13.2.2", "entity tags, their comparison, and the order of conditions"}},
	{regexp.MustCompile(`(?i)if-(un)?modified-since|last-modified`), Reading{"dates of change", "RFC 9110, section 8.8.2, 13.1.3 and 13.1.4", "conditions on the time of change"}},
	{regexp.MustCompile(`(?i)\brange|content-range|\b206\b|\b416\b`), Reading{"ranges", "RFC 9110, section 14 and 15.3.7", "ranges of bytes, If-Range, multipart/byteranges, 416"}},
	{regexp.MustCompile(`(?i)connection|keep-alive|^end:`), Reading{"persistence", "RFC 9112, section 9; RFC 9110, section 7.6.1", "when a connection is kept, and what Connection lists"}},
	{regexp.MustCompile(`(?i)expect|\b100\b|\b417\b`), Reading{"Expect", "RFC 9110, section 10.1.1", "100-continue"}},
	{regexp.MustCompile(`(?i)upgrade|\b101\b`), Reading{"Upgrade", "RFC 9110, section 7.8", "switching protocols"}},
	{regexp.MustCompile(`(?i)location|\b30[12378]\b`), Reading{"redirects", "RFC 9110, section 10.2.2 and 15.4", "Location, and the statuses that redirect"}},
	{regexp.MustCompile(`(?i)\b405\b|allow\b`), Reading{"methods", "RFC 9110, section 9 and 15.5.6", "methods, and a method that is not allowed"}},
	{regexp.MustCompile(`(?i)\b304\b|\b412\b`), Reading{"conditions", "RFC 9110, section 13.2.2 and 15.4.5", "the order in which conditions are looked at"}},
	{regexp.MustCompile(`(?i)cache-control|expires`), Reading{"freshness", "RFC 9111, section 5.2 and 5.3", "Cache-Control and Expires"}},
	{regexp.MustCompile(`(?i)set-cookie|cookie`), Reading{"cookies", "RFC 6265, section 4.1 and 5.2", "Set-Cookie and Cookie"}},
	{regexp.MustCompile(`(?i)date differs|\bdate\b`), Reading{"Date", "RFC 9110, section 6.6.1 and 5.6.7", "the Date field and the forms of dates"}},
	{regexp.MustCompile(`(?i)trailer`), Reading{"trailers", "RFC 9110, section 6.5; RFC 9112, section 7.1.2", "trailer fields"}},
	{regexp.MustCompile(`(?i)\b400\b|first line|headers of|order`), Reading{"messages", "RFC 9112, section 2.2, 3 and 5", "request lines, fields, and what is to be done with wrong ones"}},
	{regexp.MustCompile(`(?i)\b50[234]\b|origin:`), Reading{"gateways", "RFC 9110, section 7.6 and 15.6", "forwarding a message; 502, 503 and 504"}},
}

// Standards lists what speaks of a difference, the most telling first, at most n.
func Standards(core, around string, n int) (out []Reading) {
	for _, text := range []string{core, around} {
		for _, r := range readings {
			if len(out) == n {
				return out
			}
			if r.on.MatchString(text) && !has(out, r.read) {
				out = append(out, r.read)
			}
		}
	}
	return out
}

func has(list []Reading, r Reading) bool {
	for _, x := range list {
		if x == r {
			return true
		}
	}
	return false
}

// DocPage is nginx's page for a directive of a module, "" for a module that has
// no page of its own.
func DocPage(directive, module string) string {
	page := "http/" + strings.TrimSuffix(module, "_filter_module")
	switch {
	case module == "nginx" || module == "ngx_event" || module == "ngx_log" || module == "ngx_conf_file" || module == "ngx_regex" || module == "ngx_thread_pool":
		page = "ngx_core_module"
	case strings.HasPrefix(module, "ngx_http_upstream"):
		page = "http/ngx_http_upstream_module"
	case module == "ngx_http_copy_filter_module" || module == "ngx_http" || module == "ngx_http_try_files_module":
		page = "http/ngx_http_core_module"
	case strings.HasSuffix(module, "_filter_module"):
		page += "_module"
	case !strings.HasPrefix(module, "ngx_http_"):
		return ""
	}
	return "https://nginx.org/en/docs/" + page + ".html#" + directive
}
