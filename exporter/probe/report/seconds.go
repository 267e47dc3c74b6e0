package report

import "oneway.example/exporter/core/document"

// Seconds is the duration of all documents.
type Seconds = document.Seconds
