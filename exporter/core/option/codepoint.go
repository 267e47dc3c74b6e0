package option

import (
	"fmt"
	"regexp"
	"strings"
)

// CodePointMeant is the number of a code point (DSCP) by its name (RFC 2474, 2597, 3246, 5865), in words; empty: text is no name.
func CodePointMeant(text string) string {
	name := strings.ToUpper(strings.TrimSpace(text))
	if !regexp.MustCompile(`^(EF|VA|LE|BE|DF|CS[0-7]|AF[1-4][1-3])$`).MatchString(name) {
		return ""
	}
	n := map[string]int{"EF": 46, "VA": 44, "LE": 1}[name]
	switch name[:2] {
	case "CS":
		n = 8 * int(name[2]-'0')
	case "AF":
		n = 8*int(name[2]-'0') + 2*int(name[3]-'0')
	}
	return fmt.Sprintf("write %d, the number of this code point", n)
}
