// Package clouds lets [switchyard/activities/store.Open] open buckets of S3 (s3://) and of Google Cloud Storage (gs://).
// A program imports it for its effect. It is apart from package store because the clients of these services are larger
// than the rest of the program.
package clouds

import (
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/s3blob"  // s3://
)
