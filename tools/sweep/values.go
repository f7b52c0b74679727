package main

import "strings"

// odd are values at the limits of every type, and beyond them, as they are written in a configuration.
var odd = strings.Split(strings.Join([]string{
	// numbers, sizes, offsets, times
	`0␤1␤2␤00␤-0␤-1␤+1␤1.5␤.5␤1.␤0x10␤1e3␤1_0␤01␤127␤128␤255␤256␤257␤511␤512␤4096␤65535␤65536␤2147483647␤2147483648␤4294967295␤4294967296`,
	`9223372036854775807␤9223372036854775808␤18446744073709551615␤18446744073709551616␤99999999999999999999␤9007199254740991k␤9007199254740992k␤8388607t␤8589934591g␤8589934592g␤8796093022207m␤8796093022208m`,
	`k␤1k␤1K␤1kb␤10kk␤1m␤1M␤1g␤1G␤1t␤-1k␤0k␤1k1␤"1 k"␤1b`,
	`1s␤1S␤1ms␤10ms␤1m1s␤1s1m␤"1m 1s"␤"1m  1s"␤1y␤1M1d␤1w␤1d1h1m1s1ms␤1ms1s␤1sm␤ms␤s␤y␤1y1M1w1d1h1m1s␤9223372036854775s␤9223372036854775807ms␤2147483647s␤2147483648s␤2147483s␤2147484s␤24d␤25d␤68y␤69y␤-1s␤1.5s`,
	`@0h␤@24h␤@25h␤@15h30m␤@␤@-1␤@x␤@86400␤@86401`,
	// words
	`on␤off␤ON␤Off␤oN␤offf␤o␤any␤all␤none␤auto␤default␤max␤min␤epoch␤always␤never␤error␤timeout␤yes␤no␤true␤false␤null␤x␤off\x00␤on\x00x␤volatile␤hostnames␤include␤ranges␤proxy␤delete␤proxy_recursive`,
	// quotes, escapes
	`""␤''␤" "␤' x'␤"\""␤"\\"␤\\␤\ ␤a\ b␤a"b␤"a"b␤"a␤'a␤"a'b"␤a\tb␤a\nb␤"a\nb"␤a;b␤a{b␤a}b␤{␤}␤a#b␤#a␤\;␤\{␤"a\$b"␤␁␤a␀b␤␀␤é␤"é"␤ÿ␤(␤)␤(a␤a)␤[␤]␤*␤?␤!␤!=␤=␤==␤<␤>␤|␤&␤%␤%s␤%d%n␤` + "`",
	// paths and URIs
	`/␤//␤.␤..␤../x␤./x␤/x/␤/x␤x/␤x/y␤/nope/x␤/nope/x/␤/proc/x␤/cell␤/cell/␤/cell/html␤/cell/html/␤html␤html/␤html/index.html␤html/index.html/␤html/index.html/x␤/dev/null␤/etc/passwd␤/usr/x␤/tmp/x␤conf/*.conf␤conf/nope*.conf␤conf/[␤conf/?ne.conf␤conf/one.conf␤conf␤@a␤@␤/a?b␤/a#b␤?␤?a=b␤=200␤=404␤=999␤=1000␤=-1␤=␤=x␤` + strings.Repeat("/x", 300) + "␤/" + strings.Repeat("y", 300),
	// addresses
	`127.0.0.1␤127.0.0.1:80␤127.0.0.1:0␤127.0.0.1:65535␤127.0.0.1:65536␤127.0.0.1:-1␤127.0.0.1:x␤127.0.0.1:␤:80␤:␤:x␤127.0.0.1/32␤127.0.0.1/33␤127.0.0.1/8␤127.0.0.1/-1␤127.0.0.1/␤127.0.0.1/255.0.0.0␤127.0.0.1/255.0.255.0␤0.0.0.0/0␤1.2.3␤1.2.3.4.5␤256.1.1.1␤1.2.3.04␤01.2.3.4␤0x7f.1␤127.1␤::1␤[::1]␤[::1]:80␤[::1]:␤[::1␤::1]␤[::1]x␤[]␤[]:80␤[::]:80␤::1/128␤::1/129␤::/0␤2001:db8::/32␤2001:db8::1/32␤1:2:3:4:5:6:7:8:9␤::ffff:1.2.3.4␤::ffff:1.2.3.4/120␤fe80::1%lo␤localhost␤localhost:80␤nope.invalid␤nope.invalid:80␤80␤8081␤*:80␤*␤*:␤*:x␤80-81␤127.0.0.1:80-82␤127.0.0.1:82-80␤127.0.0.1:80-65536␤0-0␤unix:␤unix:/␤unix:/x␤unix:x␤unix:/x:␤unix:/x:/y␤unix:` + strings.Repeat("/u", 53) + `␤unix:` + strings.Repeat("/u", 54) + `␤1.2.3.4-1.2.3.5␤1.2.3.5-1.2.3.4␤1.2.3.4-␤-1.2.3.4␤0.0.0.0-255.255.255.255`,
	// URLs
	`http://␤http:␤http:/␤http:///␤http:///x␤HTTP://up␤https://␤https://up␤ftp://up␤http://up␤http://up/␤http://up/x␤http://up:80␤http://up:81/␤http://127.0.0.1:0␤http://127.0.0.1:99999␤http://127.0.0.1:x/␤http://127.0.0.1:80x/␤http://[::1␤http://[::1]:80/␤http://unix:␤http://unix:/x␤http://unix:/x:␤http://unix:/x:/y␤http://unix:/x:y␤http://nope.invalid␤http://nope.invalid/␤http://nope.invalid:80/␤http://a@b/␤http://:80␤http://*:80␤http://$host␤http://$host/x␤http://$nope␤http://up?x␤http://up/?x␤http://up#x␤http://127.0.0.1?x␤$scheme://up␤http://$1␤x://y`,
	// variables
	`$␤$$␤${␤${}␤${a␤${uri␤${uri}␤$uri␤$uri$args␤"$uri $args"␤$nope␤$1␤$9␤$10␤$0␤$1x␤${1}␤x$␤x$uri␤x${uri}y␤$mapped␤$arg_␤$arg_a␤$http_␤$http_a␤$sent_http_a␤$cookie_a␤$upstream_http_a␤$URI␤$-␤$a-b␤$time_local␤$args␤$host␤$limit_rate␤$limit_req_status␤$proxy_host␤$upstream_addr␤$http2␤$ssl_cipher␤"$"␤\$uri`,
	// regexes and names
	`~␤~*␤~a␤~*a␤^~␤~(␤~)␤~[␤~a{2␤~a{2,1}␤~\d␤~(?<n>x)␤~(?<uri>x)␤~(?<1>x)␤~(?P<n>x)␤~(?<n>x)(?<n>y)␤~*(?i)x␤~\␤~+␤~*+␤~\x␤~(?<=a+)␤~^(a)$␤"~ a"␤~^/$␤!~␤-f␤!-f␤(␤^(a|b)$␤a(␤a[␤[a␤*.a.b␤.a.b␤.a␤*.a␤a.*␤*.*␤a.*.b␤*a.b␤a.b*␤.*␤*.␤..a␤a..b␤a.b.␤-a␤A.B␤_␤a_b␤server_names␤blocked␤none`,
}, "␤"), "␤")

// zero and one are bytes that cannot stand in the list as they are.
func init() {
	for i, v := range odd {
		odd[i] = strings.NewReplacer(`\x00`, "\x00", "␀", "\x00", "␁", "\x01", "ÿ", "\xff").Replace(v)
	}
}

// parameters are further arguments, right for some directives.
var parameters = strings.Fields(`weight=1 weight=0 weight=-1 weight=x weight= weight weight=65535 weight=65536 max_fails=0 max_fails=-1 max_fails=x fail_timeout=0 fail_timeout=1s fail_timeout=x fail_timeout=
	max_conns=0 max_conns=x backup down backup= Backup slow_start=1s resolve service=x
	default_server default ssl http2 http3 quic proxy_protocol deferred bind reuseport ipv6only=on ipv6only=off ipv6only=x backlog=1 backlog=0 backlog=-1 backlog=x backlog=4294967295 backlog=4294967296 backlog=2147483648 setfib=4294967295 fastopen=4294967295 fastopen=-1 rcvbuf=4294967295 rcvbuf=2147483648 rcvbuf=4294967296 sndbuf=4294967295 sndbuf=4g keepidle so_keepalive=4294967295:: so_keepalive=:4294967295: rcvbuf=1k rcvbuf=0 rcvbuf=x sndbuf=4k sndbuf=x setfib=1 fastopen=1 fastopen=0 fastopen=x accept_filter=x
	so_keepalive=on so_keepalive=off so_keepalive= so_keepalive=x so_keepalive=:: so_keepalive=1:2:3 so_keepalive=1s:: so_keepalive=1:2:3:4 so_keepalive=0:: so_keepalive=::x udp
	zone=lr zone=lc zone= zone=nope zone=n:32k zone=n:1k zone=n:32767 zone=n:32768 zone=n: zone=:32k zone=n:x zone=lr:32k zone=lr:64k zone rate=1r/s rate=0r/s rate=1r/m rate=1r/h rate=1 rate= rate=x rate=-1r/s rate=1r rate=99999999999r/s
	burst=1 burst=0 burst=-1 burst=x burst= nodelay delay=1 delay=0 delay=x delay= lr=1 consistent two two=least_conn two=x two= least_conn
	buffer=1k buffer=0 buffer=x buffer= buffer=64k flush=1s flush=0 flush=x flush= gzip gzip=1 gzip=0 gzip=9 gzip=10 gzip=x gzip= if=$uri if=x if= if=$nope if lf combined escape=json escape=x escape= escape=none escape=default
	max=1 max=0 max=x max= max=-1 inactive=1s inactive=0 inactive=x inactive= min_uses=1 min_uses=0 min_uses=x valid=1s valid=0 valid=x valid= off
	always Always secure httponly samesite=lax samesite=x samesite= samesite=strict samesite=none nosecure nohttponly nosamesite secure=1 permanent redirect last break
	threads=1 threads=0 threads=x threads= max_queue=1 max_queue=0 max_queue=x max_queue=-1 ipv4=on ipv4=off ipv6=off ipv6=x status_zone=x from=$document_root from=/ from= from=x any
	modified user:rw user:r group:rw all:r user:x user: x:rw user debug info notice warn error crit alert emerg 1:2:3 1 2 3`)

// entries are lines' words of blocks that have a language of their own.
var entries = map[string][]string{
	"types":         {"text/html", "text/plain", "html", "txt", "HTML", "include", "conf/one.conf", "default"},
	"map":           {"default", "hostnames", "volatile", "include", "conf/one.conf", "~a", "~*a", "~(", "*.a.b", "a.*", ".a", "\\default", "\\hostnames", "$uri", "x", "a", "$nope", "${uri}x", "~(?<n>x)", "$n", "$1"},
	"geo":           {"default", "ranges", "include", "proxy", "proxy_recursive", "delete", "127.0.0.1", "127.0.0.0/8", "10.0.0.1/8", "1.1.1.1-1.1.1.2", "::1", "::1/64", "x", "a", "255.255.255.255", "0.0.0.0/0", "1.1.1.0-1.1.1.255", "conf/one.conf", "1.1.1.2-1.1.1.1"},
	"split_clients": {"0.5%", "50%", "100%", "*", "0%", "0.01%", "0.001%", "99.99%", "100.01%", "%", "-1%", "x", "$uri", `""`, "50", "60%", "1.%", ".5%"},
	"charset_map":   {"80", "E282AC", "8", "800", "GG", "00", "FF", "D0", "C2A0", "F09F9880", "0", "7F", "x"},
}

// fillers are values for the placeholders of fuzz/grammar/args.txt; others are odd.
var fillers = map[string][]string{
	"flag": {"on", "off"}, "num": {"0", "1", "2", "16", "512"}, "size": {"0", "1", "1k", "4k", "1m", "100"}, "bsize": {"1k", "4k", "8k", "512"}, "bsize2": {"1k", "4k", "8k", "512"},
	"time": {"0", "1s", "1m", "10ms", "1h"}, "path": {"html", "/cell/html", "html/$uri", "/nope"}, "mime": {"text/plain", "text/css", "*"}, "str": {`"a b"`, "x", `""`, "$uri"}, "text": {`"a $uri"`, "x", `""`},
	"word": {"x", "y", "abc"}, "uri": {"/x", "/a/b", "/", "/x?y"}, "named": {"@a"}, "code": {"200", "404", "500", "301", "499"}, "rcode": {"301", "302", "307"}, "var": {"$uri", "$args", "$mapped"},
	"setvar": {"$a", "$bc"}, "regex": {"^/a", "(.*)", `"\.txt$"`, "a(?<n>b)"}, "re": {"^a", "(.*)"}, "repl": {"/x", "/$1", "http://x/", "/x?"}, "rflag": {"last", "break", "redirect", "permanent"}, "host": {"a.test", "*.a.test", "~^a"},
	"cidr": {"127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32", "unix:"}, "hname": {"X-A", "X-B"}, "shname": {"Cache-Control", "ETag"}, "iname": {"index.html", "$uri", "/x"}, "absurl": {"http://example.test/x", "https://a/"},
	"ohname": {"X-A", "Server"}, "phname": {"X-A", "Host"}, "upurl": {"http://up", "http://127.0.0.1:9001/", "http://up/x"}, "method": {"GET", "POST"}, "port": {"8080", "8081"}, "file": {"conf/one.conf", "conf/bad.conf"},
}

// forms are further ones that the generator builds in its own ways.
var forms = map[string][]string{
	"server upstream":      {"127.0.0.1:9001", "127.0.0.1:9001 weight=2 max_fails=1", "127.0.0.1:9001 down", "127.0.0.1:9001 backup", "unix:/x fail_timeout=1s", "localhost max_conns=1"},
	"random upstream":      {"two", "two least_conn"},
	"zone upstream":        {"z 64k", "z"},
	"limit_req":            {"zone=lr burst=2 delay=1", "zone=lr burst=1"},
	"limit_req_zone":       {"$uri zone=n:64k rate=2r/m"},
	"access_log":           {"logs/a.log lf", "logs/a.log lf gzip=1 buffer=1k flush=1s", "logs/$uri.log lf if=$args", "syslog:server=127.0.0.1 lf"},
	"error_log":            {"syslog:server=127.0.0.1", "stderr info", "memory:64k debug"},
	"listen":               {"127.0.0.1:8081 backlog=5 bind", "unix:/cell/s", "[::1]:8081 ipv6only=on", "127.0.0.1:8081 so_keepalive=1s:1s:3"},
	"proxy_pass":           {"http://up/$1", "http://$host", "http://unix:/x:/y"},
	"expires":              {"modified 1h", "@1h", "1d1h"},
	"satisfy":              {"any", "all"},
	"aio":                  {"on", "threads=default"},
	"auth_basic_user_file": {"/dev/null"},
	"keepalive upstream":   {"16"},
	"split_clients":        {"$uri $a"},
	"geo":                  {"$uri $a", "$a"},
	"if":                   {"($uri)", "($uri = x)", "($uri != x)", "(-f $uri)", "(!-d /x)", "($uri ~ ^/a)", "($uri !~* (b))", "(-e", "$uri)", "( $uri )", "($uri =x)", "($uri=x)", "()", "(", "($1)", "($nope)", "(uri)", "($uri ~ ()", "(-x $uri)", "(!-x $uri)", "(-z $uri)", "($uri == x)", "($uri ~)", "($uri x)", "($uri = x y)"},
	"location":             {"~ ^/a", "~* (b)", "^~ /c", "= /", "@n", "~^/a", "~*x", "=/x", "^~/x", "~ (", "/a/b", "/a", "/A", "= @n", "~", "^~"},
	"rewrite":              {"^ /x last", "^/(.*)$ /$1? permanent", "^ http://x redirect", "^ $scheme://x", "( /x", "^ /x break"},
	"return":               {"444", "200 x", "301 /x", "http://x/", "https://$host", "$scheme://x", "600", "200 $uri"},
	"error_page":           {"404 =200 /x", "404 = @a", "500 502 =301 http://x/", "404 =404 /y", "400 /x$uri"},
}

// families are directives that are checked against each other.
var families = []string{
	"proxy_buffer_size proxy_buffers proxy_busy_buffers_size proxy_temp_file_write_size proxy_max_temp_file_size proxy_buffering",
	"root alias try_files index autoindex error_page internal",
	"proxy_set_header proxy_headers_hash_max_size proxy_headers_hash_bucket_size proxy_hide_header proxy_pass_header proxy_ignore_headers",
	"types types_hash_max_size types_hash_bucket_size default_type gzip_types sub_filter_types charset_types addition_types",
	"map map_hash_max_size map_hash_bucket_size geo split_clients set variables_hash_max_size variables_hash_bucket_size",
	"server_name server_names_hash_max_size server_names_hash_bucket_size listen",
	"log_format access_log open_log_file_cache error_log rewrite_log",
	"limit_req limit_req_zone limit_req_status limit_conn limit_conn_zone limit_conn_status",
	"server hash ip_hash least_conn random keepalive keepalive_requests keepalive_time keepalive_timeout zone",
	"proxy_pass proxy_store proxy_redirect proxy_cookie_path proxy_cookie_domain proxy_cookie_flags proxy_bind proxy_method proxy_set_body proxy_http_version",
	"gzip gzip_buffers gzip_comp_level gzip_window gzip_hash gzip_types gzip_disable gzip_proxied gunzip gunzip_buffers gzip_static",
	"charset charset_map source_charset override_charset charset_types",
	"client_body_temp_path proxy_temp_path client_body_buffer_size client_max_body_size client_body_in_file_only",
	"open_file_cache open_file_cache_valid open_file_cache_min_uses open_file_cache_errors disable_symlinks aio thread_pool directio sendfile output_buffers postpone_output",
	"satisfy allow deny auth_basic auth_basic_user_file valid_referers referer_hash_max_size referer_hash_bucket_size set_real_ip_from real_ip_header",
	"client_header_buffer_size large_client_header_buffers connection_pool_size request_pool_size client_header_timeout keepalive_timeout keepalive_disable resolver resolver_timeout",
	"rewrite return break set if error_page try_files secure_link secure_link_md5 secure_link_secret mirror slice stub_status empty_gif random_index",
}
