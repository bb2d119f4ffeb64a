// Package switchyardv1 is the single data model of Switchyard: what people write, what the API carries
// and what conditions see. The internal messages, which contain these, are those of
// proto/switchyard/history/v1. dev/generate.sh generates the code from the proto files in this folder.
package switchyardv1
