#ifndef __ALLOCATOR_BRAIN_EVENTS_HPP__
#define __ALLOCATOR_BRAIN_EVENTS_HPP__

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/books/books.hpp"
#include "brain/books/resource_classes.hpp"
#include "brain/ready.hpp"
#include "brain/books/tables.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {

// Inputs of the brain. Agents and frameworks are named by id, roles by path.
// Amounts refer to resource classes, which must be defined first.

struct DefineResourceClass
{
  uint32_t resourceClass = 0;
  Traits traits;
};


struct RoleParts
{
  std::string role;
  Parts parts;
};


struct Use
{
  std::string framework;
  std::string role;
  Parts parts;
};


// Calls of the master.

struct Initialize
{
  Options options;
};


struct SetQuota
{
  std::string role;
  Quantities guarantees;
  Quantities limits; // Both empty: no quota.
};


struct Recover
{
  int expectedAgents = 0;
  std::vector<SetQuota> quotas;
};


struct AddAgent
{
  std::string agent;

  // Only host name, attributes, domain and capabilities are set; the brain
  // fills in the rest.
  wire::Agent info;
  Unavailability unavailability;
  Parts total;
  std::vector<Use> used;
};


struct RemoveAgent
{
  std::string agent;
};


struct UpdateAgent
{
  std::string agent;
  wire::Agent info;
  bool newInfo = false; // Something other than the total changed.
  bool newAttributes = false;
  bool hasTotal = false;
  Parts total;
};


struct AddProvider
{
  std::string agent;
  Parts total; // Added to the agent's total.
  std::vector<Use> used;
};


struct ActivateAgent
{
  std::string agent;
  bool active = true;
};


struct SetWhitelist
{
  bool restricted = false;
  std::set<std::string> hostnames;
};


struct SetUnavailability
{
  std::string agent;
  Unavailability unavailability;
};


struct AnswerInverseOffer
{
  std::string agent;
  std::string framework;
  wire::InverseOfferUpdate::Status status =
      wire::InverseOfferUpdate::STATUS_UNKNOWN;
  bool hasStatus = false;
  int64_t atNs = 0;      // When the framework answered.
  int64_t refuseMs = -1; // -1: no filter.
};


struct AddFramework
{
  std::string framework;

  // Only name, user, principal, labels and capabilities are set; the brain
  // fills in the rest.
  wire::Framework info;
  bool active = true; // Ignored by UpdateFramework.
  std::set<std::string> roles;
  std::set<std::string> suppressed;

  // See `Framework::minimum`.
  std::vector<std::pair<std::string, std::vector<Quantities>>> minimum;
};


struct UpdateFramework : public AddFramework
{};


struct RemoveFramework
{
  std::string framework;
};


struct ActivateFramework
{
  std::string framework;
  bool active = true;
};


struct Request
{
  std::string framework;
  wire::ResourceRequest request; // `framework` is not set.
};


struct Suppress
{
  std::string framework;
  std::set<std::string> roles; // Empty: all of the framework's.
};


struct Revive
{
  std::string framework;
  std::set<std::string> roles; // Empty: all of the framework's.
};


struct SetWeights
{
  std::vector<std::pair<std::string, double>> weights;
};


// Results of evaluating offer constraints, for at most `constrainedRoles` roles
// of each framework. The adapter sends them with the call that changed the
// constraints, or in a later interval if the evaluation exceeds its budget. If
// a framework has not excluded any agent yet, the adapter may detect an
// exclusion only when it is about to offer the agent.
struct Exclude
{
  struct Row
  {
    std::string framework;
    std::string role;
    std::string agent;
    bool excluded;
  };

  std::vector<Row> rows;
};


// Roles whose constraints the adapter does not evaluate: they exclude no agent.
struct IgnoreConstraints
{
  std::string framework;
  std::vector<std::string> roles;
};


// Operations that a framework performs on an offer.
struct ConvertHeld
{
  std::string agent;
  std::string framework;
  std::string role;
  Parts offered;
  std::vector<Conversion> conversions;
};


// An operator's operations, merged into one conversion.
struct ConvertFree
{
  std::string agent;
  Conversion conversion;
};


struct Transition
{
  std::string agent;
  std::vector<RoleParts> parts;
};


struct Release
{
  std::string agent;
  std::string framework;
  std::vector<RoleParts> parts;
  int64_t refuseMs = -1;  // -1: no filter.
  bool allocated = false; // A task or an executor ended.
};


// Shadow mode: offers of the deciding allocator to a framework. The master has
// them or is about to get them.
struct OfferedBeside
{
  struct Row
  {
    std::string agent;
    std::string role;
    Parts parts;
  };

  std::string framework;
  std::vector<Row> rows;
  int64_t silentMs = 0; // See Wake.
};


struct Pause
{
  bool paused = false;
};


// A call of the master that contradicts the adapter's data; logged and counted.
struct Misfit
{
  std::string text;
  Log::Level level = Log::Level::ERROR;
};


// Events of the session.

// A sidecar answered and wants a snapshot.
struct Welcomed
{
  uint32_t kindsMax = 0; // 0: the protocol's default.
  size_t chunkBytesMax = 0;
};


// The sidecar applied the snapshot and answers cycles.
struct Connected
{
  std::string sidecarId;
  std::string sidecarVersion;
};


struct Ended
{
  bool wasConnected = false;
  std::string why;
  int64_t retryInMs = 0;
};


// A session could not be started.
struct NotStarted
{
  std::string why;
};


// The answer to a cycle, or one part of it.
struct Decided
{
  session::Decisions decisions;
};


// The requested wake-up time has come, or `Ready::soon` was set. `silentMs`:
// how long the oldest unanswered batch has waited. `quietMs`: how long no
// answer has arrived although one is due.
struct Wake
{
  int64_t silentMs = 0;
  int64_t quietMs = INT64_MAX;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_EVENTS_HPP__
