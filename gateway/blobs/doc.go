// Package blobs implements BlobService, through which nodes and control processes without access to the store read values, and
// nodes store what they produce: logs, results and parts of archives.
//
// Of this module it may import proto, activities/artifacts, activities/environments, activities/executor, activities/logs, activities/store,
// activities/store/storekey, gateway/nodeaccess, gateway/paging and gateway/rpcerror.
package blobs
