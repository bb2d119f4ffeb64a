// Package pending watches the futures of a workflow. It imports nothing of this module, and of Temporal only what workflow
// code may.
package pending
