// Package switchyardv1 is the single data model of Switchyard: what people write, what Temporal
// stores, what the API carries and what conditions see. dev/generate.sh generates the code from the
// proto files in this folder.
package switchyardv1
