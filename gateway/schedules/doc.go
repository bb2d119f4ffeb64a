// Package schedules implements ScheduleService over the schedules of stored workflows in Temporal. The runs of a schedule have the
// states that visibility knows.
//
// Of this module it may import proto, activities/schedules, gateway/auth, gateway/paging, gateway/rpcerror and gateway/runview.
package schedules
