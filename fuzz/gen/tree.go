package gen

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"nginxoracle/oracle/casefile"
)

const defaultMTime = 1700000000 // docs/case-format.md

func (u *unit) file(path string, data string, mode int, mtime int64) {
	f := casefile.File{Path: path, Data: []byte(data), Mode: fs.FileMode(mode), Quoted: true}
	if mtime != 0 {
		f.MTime = time.Unix(mtime, 0).UTC()
	}
	u.byPath[path] = len(u.files)
	u.files = append(u.files, f)
}

// tree makes the unit's document folder.
func (u *unit) tree() {
	mtime := func() int64 {
		if u.pct(75) {
			return 0
		}
		return []int64{1, 86400, 951826154, 2147483647, 2147483648, 4102444800, 1699999999, 784111777}[u.n(8)]
	}
	u.file("u00/html/index.html", "<p>index of u00</p>\n", 0, mtime())
	u.file("u00/html/a.txt", "file a, 26 bytes of text.\n", 0, mtime())
	u.file("u00/html/404.html", "custom 404\n", 0, 0)
	u.file("u00/html/dir/c.txt", "c in dir\n", 0, mtime())
	if u.pct(60) {
		u.file("u00/html/dir/index.html", "index of dir\n", 0, mtime())
	}
	if u.pct(50) {
		size := []int{1, 2, 4095, 4096, 4097, 10000, 12288, 20000, 32768, 40000}[u.n(10)]
		b := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		u.file("u00/html/big.bin", string(b), 0, mtime())
	}
	if u.pct(20) {
		u.file("u00/html/empty.txt", "", 0, mtime())
	}
	type odd struct{ path, data, link string }
	odds := []odd{
		{"sp ace.txt", "space\n", ""}, {"per%63ent.txt", "percent\n", ""}, {"caf\u00e9.txt", "utf8\n", ""}, {".hidden", "hidden\n", ""},
		{"a.txt.gz", "not really gzip\n", ""}, {"dir/index.html.gz", "nor this", ""}, {"noext", "no extension\n", ""}, {"x.tar.gz", "two extensions\n", ""}, {"A.TXT", "capitals\n", ""}, {"dir.txt/x.txt", "in dir.txt\n", ""},
		{"a b/c d.html", "nested space\n", ""}, {"q?.txt", "question\n", ""}, {"semi;colon.html", "semi\n", ""}, {"trail.", "dot\n", ""}, {"a+b.txt", "plus\n", ""},
		{"link.txt", "", "a.txt"}, {"dlink", "", "dir"}, {"broken.txt", "", "nope"}, {"loop", "", "loop"}, {"up", "", "../html/a.txt"},
		{"index.txt", "text index\n", ""}, {"b.html", "<b>b</b>", ""}, {"x.html.txt", "x\n", ""}, {"nul\u0001.txt", "ctl\n", ""}, {"\xff\xfe.bin", "raw\n", ""},
	}
	for _, o := range some(u.rnd, odds, 1, 5) {
		path := "u00/html/" + o.path
		if o.link != "" {
			u.byPath[path] = len(u.files)
			u.files = append(u.files, casefile.File{Path: path, Link: o.link})
			continue
		}
		u.file(path, o.data, []int{0, 0, 0, 0600, 0444, 0755, 0000, 0664}[u.n(8)], mtime())
	}
	if u.pct(30) {
		u.files = append(u.files, casefile.File{Path: "u00/html/emptydir", Dir: true, Mode: fs.FileMode([]int{0, 0755, 0700, 0000, 0555}[u.n(5)])})
	}
	if u.pct(10) {
		u.file("u00/html/dir/403.txt", "forbidden to read\n", 0, 0)
		u.files[len(u.files)-1].Mode = 0200
	}
}

// fileTargets makes requests for files that exist.
func (u *unit) fileTargets(s *server) {
	for range u.in(1, 3) {
		i := u.n(len(u.files))
		f := u.files[i]
		if !strings.HasPrefix(f.Path, "u00/html") {
			continue
		}
		path := f.Path[len("u00/html"):]
		if f.Dir {
			u.hit(s, escape(path))
		}
		uri := escape(path)
		if u.pct(12) {
			uri += u.pick("/", "?a=1", "/x", "%00", ".")
		}
		u.hit(s, uri)
		if !f.Dir && f.Link == "" {
			u.targets[len(u.targets)-1].file = i
		}
	}
}

// escape percent-encodes what cannot stand in a request line.
func escape(p string) string {
	var b bytes.Buffer
	for i := 0; i < len(p); i++ {
		if c := p[i]; c <= ' ' || c >= 0x7f || c == '%' || c == '?' || c == '#' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(p[i])
	}
	return b.String()
}
