// Package switchyardv1 is the one data model: what people write, what Temporal
// keeps, what the API carries and what conditions see. The code is generated from
// the proto files beside it by dev/generate.sh.
package switchyardv1
