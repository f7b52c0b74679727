// Package count puts numbers of things into words: "1 case", "2 cases", "1 entry", "3 entries".
package count

import (
	"strconv"
	"strings"
)

// Of is n and the word for it. Where the plural is no regular one, or not of the last word, it is given as many.
func Of(n int, one string, many ...string) string {
	word := one
	if n != 1 {
		word = plural(one)
		if len(many) > 0 {
			word = many[0]
		}
	}
	return strconv.Itoa(n) + " " + word
}

func plural(one string) string {
	switch {
	case strings.HasSuffix(one, "ch"), strings.HasSuffix(one, "s"):
		return one + "es"
	case strings.HasSuffix(one, "y"):
		return strings.TrimSuffix(one, "y") + "ies"
	}
	return one + "s"
}
