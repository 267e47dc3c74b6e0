// Package schema has the JSON Schemas of all documents (draft 2020-12). They are generated from the types of the documents; see
// exporter/doc/json.md.
package schema

import "embed"

//go:generate go test -count=1 -run TestSchemasAreThoseOfTheDocuments ../../cmd/oneway -args -update

// Files has one file for each kind of document, KIND.json.
//
//go:embed *.json
var Files embed.FS
