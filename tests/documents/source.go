package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

const module = "oneway.example/"

// source reads the comments and constants of packages.
type source struct {
	root     string
	packages map[string]*types
}

// types are those of a package: the comments of the fields of structs, and the constants of texts.
type types struct {
	fields map[string]map[string]string
	values map[string][]string
	// unread has a constant of a type whose text is written elsewhere.
	unread map[string]string
}

// of returns the types of the package of t.
func (s *source) of(t reflect.Type) *types {
	path := t.PkgPath()
	if known, ok := s.packages[path]; ok {
		return known
	}
	found := &types{fields: map[string]map[string]string{}, values: map[string][]string{}, unread: map[string]string{}}
	s.packages[path] = found
	if path == "main" {
		path = module + "exporter/cmd/oneway"
	}
	below, ours := strings.CutPrefix(path, module)
	if !ours {
		return found
	}
	if s.root == "" {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", strings.TrimSuffix(module, "/")).Output()
		if err != nil {
			panic("documents: find the module: " + err.Error())
		}
		s.root = strings.TrimSpace(string(out))
	}
	files, _ := filepath.Glob(filepath.Join(s.root, below, "*.go")) // the pattern is valid
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic("documents: " + err.Error())
		}
		found.read(file)
	}
	return found
}

func (p *types) read(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				p.fields[n.Name.Name] = comments(s)
			}
		case *ast.ValueSpec:
			name, ok := n.Type.(*ast.Ident)
			if !ok {
				return true
			}
			for _, v := range n.Values {
				switch v := v.(type) {
				case *ast.BasicLit:
					if text, err := strconv.Unquote(v.Value); err == nil && v.Kind == token.STRING { // else it is a number
						p.values[name.Name] = append(p.values[name.Name], text)
					}
				case *ast.SelectorExpr:
					p.unread[name.Name] = n.Names[0].Name
				}
			}
		}
		return true
	})
}

// comments are the comments of fields by name. A comment for several fields stands before the first; the others have it if it
// mentions them.
func comments(s *ast.StructType) map[string]string {
	all, last := map[string]string{}, ""
	for _, f := range s.Fields.List {
		words := f.Doc.Text() + f.Comment.Text()
		if words != "" {
			last = words
		}
		for _, name := range f.Names {
			if words != "" || regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(last) {
				all[name.Name] = strings.Join(strings.Fields(last), " ")
			}
		}
	}
	return all
}

// docs are the descriptions of a struct's fields, with the names of JSON instead of those of Go.
func (s *source) docs(t reflect.Type) map[string]string {
	name, _, _ := strings.Cut(t.Name(), "[")
	all := map[string]string{}
	for field, words := range s.of(t).fields[name] {
		for f := range t.Fields() {
			tag := f.Tag.Get("json")
			if tag == "" {
				tag = f.Tag.Get("yaml")
			}
			if inJSON, _, _ := strings.Cut(tag, ","); inJSON != "" && inJSON != "-" {
				words = regexp.MustCompile(`\b`+f.Name+`\b`).ReplaceAllString(words, inJSON)
			}
		}
		all[field] = strings.ReplaceAll(strings.ReplaceAll(words, "is nil", "is absent"), "nil", "absent")
	}
	return all
}
