//go:build !unix

package httpd

import "math"

func mostDescriptors() int { return math.MaxInt }
