// Package names holds the names that the parts of Switchyard must agree on: workflow and activity types, task queues, signals,
// queries and IDs, each with its inverse where it is parsed. Besides the pure packages, it is the only package that both
// workflows and activities import. It imports nothing of Switchyard.
package names
