package server

import (
	"strings"

	"nginxoracle/proxy/ev"
)

// Compiled-in paths, as in Debian's build of nginx (nginx -V).
const (
	version       = "nginx/1.26.3"
	defaultPrefix = "/usr/share/nginx/"
	defaultConf   = "/etc/nginx/nginx.conf"
)

// options is the command line (nginx.c, ngx_get_options).
type options struct {
	help, version, configure bool
	directives               bool // ours: list what is supported
	test, dump, quiet        bool
	prefix, errorLog, conf   *string
	params, signal           string
}

// console writes "nginx: text" to the standard error stream (ngx_log_stderr).
func console(text string) { ev.WriteFD(2, []byte("nginx: "+text+"\n")) }

// parse reads the arguments; a fault has been told when ok is false.
func (o *options) parse(args []string) (ok bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--directives" {
			o.directives = true
			continue
		}
		if !strings.HasPrefix(arg, "-") {
			console(`invalid option: "` + arg + `"`)
			return false
		}
		// value is the rest of the word, or the next word
		value := func(rest, missing string) (string, bool) {
			if rest != "" {
				return rest, true
			}
			if i++; i < len(args) {
				return args[i], true
			}
			console(missing)
			return "", false
		}
	letters:
		for p := arg[1:]; p != ""; {
			c := p[0]
			p = p[1:]
			switch c {
			case '?', 'h':
				o.version, o.help = true, true
			case 'v':
				o.version = true
			case 'V':
				o.version, o.configure = true, true
			case 't':
				o.test = true
			case 'T':
				o.test, o.dump = true, true
			case 'q':
				o.quiet = true
			case 'p':
				v, ok := value(p, `option "-p" requires directory name`)
				if !ok {
					return false
				}
				o.prefix = &v
				break letters
			case 'e':
				v, ok := value(p, `option "-e" requires file name`)
				if !ok {
					return false
				}
				if v == "stderr" {
					v = ""
				}
				o.errorLog = &v
				break letters
			case 'c':
				v, ok := value(p, `option "-c" requires file name`)
				if !ok {
					return false
				}
				o.conf = &v
				break letters
			case 'g':
				v, ok := value(p, `option "-g" requires parameter`)
				if !ok {
					return false
				}
				o.params = v
				break letters
			case 's':
				v, ok := value(p, `option "-s" requires parameter`)
				if !ok {
					return false
				}
				switch v {
				case "stop", "quit", "reopen", "reload":
				default:
					console(`invalid option: "-s ` + v + `"`)
					return false
				}
				o.signal = v
				break letters
			default:
				console(`invalid option: "` + string([]byte{c}) + `"`)
				return false
			}
		}
	}
	return true
}

const usage = `Usage: nginx [-?hvVtTq] [-s signal] [-p prefix]
             [-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -p prefix     : set prefix path (default: ` + defaultPrefix + `)
  -e filename   : set error log file (default: stderr)
  -c filename   : set configuration file (default: ` + defaultConf + `)
  -g directives : set global directives out of configuration file

`
