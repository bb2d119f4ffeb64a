// Package historyv1 has the internal messages: the inputs, states, requests and answers that Temporal's histories hold, and the
// parts of them that the store keeps. No service of the API carries them. dev/generate.sh generates the code from the proto files
// in this folder. It may import proto/switchyard/v1, which cannot import it.
package historyv1
