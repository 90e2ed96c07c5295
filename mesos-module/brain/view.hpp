#ifndef __ALLOCATOR_BRAIN_VIEW_HPP__
#define __ALLOCATOR_BRAIN_VIEW_HPP__

#include <cstdint>
#include <string>

#include "brain/brain.hpp"

namespace allocator {
namespace brain {

// The books as JSON, for whoever wonders why something is not offered:
//
//     {"session": {"snapshot": true, "connected": true, ...}, "paused": false,
//      "recovering": false, "next": 0,
//      "frameworks": [{"id": ..., "active": true, "roles": [...],
//                      "suppressed": [...]}, ...],
//      "agents": [{"id": ..., "hostname": ..., "active": true,
//                  "pieces": [{"name": "cpus", "total": 4, "held": 1}, ...],
//                  "held": [{"framework": ..., "role": ...,
//                            "amounts": {"cpus": 1}}, ...],
//                  "refusals": [{"framework": ..., "role": ...,
//                                "expires_ms": ...,
//                                "amounts": {"cpus": 4}}, ...]}, ...]}
//
// It is a page: of agents and frameworks with numbers from `first`, so many
// numbers of each as `count` says. `next` is where the next page begins; 0
// after the last one. Amounts of ranges and sets are how many there are. A
// refusal that its framework took back may be among the refusals.
std::string view(const Brain& brain, uint32_t first, uint32_t count);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_VIEW_HPP__
