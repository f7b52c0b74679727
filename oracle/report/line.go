package report

import (
	"regexp"
	"strings"
)

// meansItself is what a shell takes as one word that means itself.
var meansItself = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Word is s as one word of a line to paste into a shell.
func Word(s string) string {
	if meansItself.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
