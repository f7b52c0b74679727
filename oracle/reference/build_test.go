package reference

import (
	"slices"
	"testing"

	"nginxoracle/oracle/engine"
)

const debianV = "nginx version: nginx/1.26.3\nbuilt with OpenSSL 3.5.7 9 Jun 2026\nTLS SNI support enabled\nconfigure arguments: --with-cc-opt='-g -O2 -fPIC' " +
	"--prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf --http-log-path=/var/log/nginx/access.log --error-log-path=stderr --lock-path=/var/lock/nginx.lock " +
	"--pid-path=/run/nginx.pid --modules-path=/usr/lib/nginx/modules --http-client-body-temp-path=/var/lib/nginx/body --http-proxy-temp-path=/var/lib/nginx/proxy --with-debug\n"

func TestWhichBuildItIs(t *testing.T) {
	for _, x := range []struct{ v, want string }{
		{debianV, ""},
		{"nginx version: nginx/1.26.3\nconfigure arguments: --prefix=/etc/nginx --conf-path=/etc/nginx/nginx.conf --error-log-path=/var/log/nginx/error.log\n", "it was not configured with --prefix=/usr/share/nginx"},
		{"nginx version: nginx/1.26.3 (Ubuntu)\n" + debianV[len("nginx version: nginx/1.26.3\n"):], "it is nginx/1.26.3 (Ubuntu)"},
		{"nginx version: nginx/1.26.2\n" + debianV[len("nginx version: nginx/1.26.3\n"):], "it is nginx/1.26.2"},
		{"nginx version: nginx/1.26.3\n", "it does not say how it was configured"},
	} {
		if got := differs(x.v); got != x.want {
			t.Errorf("%.60q: got %q, want %q", x.v, got, x.want)
		}
	}
}

// The build that the proxy follows comes before what is here already, unless a person named a version.
func TestOrderOfSources(t *testing.T) {
	const other = "it is another"
	all := here{docker: true, spaces: true, image: true, program: true}
	others := all
	others.imageOther, others.programOther = other, other
	for _, x := range []struct {
		name string
		kind string
		h    here
		any  bool
		want []source
	}{
		{"nothing is here", Auto, here{docker: true, spaces: true}, false, []source{packagesLocal, pulledImage}},
		{"both are here and right", Auto, all, false, []source{theImage, theProgram, packagesLocal}},
		{"both are here and others", Auto, others, false, []source{packagesLocal, theImage, theProgram}},
		{"both are here, others, and asked for", Auto, others, true, []source{theImage, pulledImage, theProgram, packagesLocal}},
		{"no image, a version asked for", Auto, here{docker: true, spaces: true}, true, []source{pulledImage, packagesLocal}},
		{"no namespaces", Auto, here{docker: true}, false, []source{packagesBuilt, pulledImage}},
		{"no namespaces, another image", Auto, here{docker: true, image: true, imageOther: other}, false, []source{packagesBuilt, theImage}},
		{"no engine", Auto, here{spaces: true, program: true, programOther: other}, false, []source{packagesLocal, theProgram}},
		{"neither", Auto, here{}, false, nil},
		{"containers, other builds", engine.Container, others, false, []source{packagesBuilt, theImage}},
		{"containers, the build", engine.Container, all, false, []source{theImage, packagesBuilt}},
		{"local, other builds", engine.Local, others, false, []source{packagesLocal, theProgram}},
		{"local, asked for", engine.Local, others, true, []source{theProgram, packagesLocal}},
	} {
		if got := order(x.kind, x.h, x.any); !slices.Equal(got, x.want) {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
	}
}
