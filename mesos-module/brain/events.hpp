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

// What the brain is told. Agents, frameworks and roles go by their ids and
// paths; amounts by resource classes, which must be defined before.

// Defines a resource class.
struct DefineResourceClass
{
  uint32_t resourceClass = 0;
  Traits traits;
};


// Amounts in a role.
struct RoleParts
{
  std::string role;
  Parts parts;
};


// What a framework uses on an agent.
struct Use
{
  std::string framework;
  std::string role;
  Parts parts;
};


// The calls of the master.

struct Initialize
{
  Options options;
};


struct SetQuota
{
  std::string role;
  Quantities guarantees;
  Quantities limits; // Neither: no quota.
};


struct Recover
{
  int expectedAgents = 0;
  std::vector<SetQuota> quotas;
};


struct AddAgent
{
  std::string agent;

  // The host's name, attributes, domain and capabilities; the rest is for
  // the brain.
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
  wire::Agent info;     // As in AddAgent.
  bool newInfo = false; // Whether something else is new than the total.
  bool newAttributes = false;
  bool hasTotal = false;
  Parts total;
};


struct AddProvider
{
  std::string agent;
  Parts total; // In addition to the agent's.
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
  int64_t atNs = 0;      // When it was given.
  int64_t refuseMs = -1; // -1: no filter.
};


struct AddFramework
{
  std::string framework;

  // Name, user, principal, labels and capabilities; the rest is for the
  // brain.
  wire::Framework info;
  bool active = true; // Not looked at by UpdateFramework.
  std::set<std::string> roles;
  std::set<std::string> suppressed;

  // As `Framework::minimum`.
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
  wire::ResourceRequest request; // Without the framework.
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


// What offer constraints say, as the adapter evaluated them, for so many roles
// as `constrainedRoles` allows. It is told with what made it say so, or in a
// later interval where that is more than one may take; of a framework that has
// excluded nobody yet, when it would be offered what it excludes.
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


// Roles of a framework for which they are not evaluated: they exclude nobody.
struct IgnoreConstraints
{
  std::string framework;
  std::vector<std::string> roles;
};


// Operations on what a framework was offered.
struct ConvertHeld
{
  std::string agent;
  std::string framework;
  std::string role;
  Parts offered;
  std::vector<Conversion> conversions;
};


// An operator's operations, all of them as one conversion.
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


// What the allocator that decides beside the module, which is in shadow then,
// offers a framework: the master has it already, or will.
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
  int64_t silentMs = 0; // As in Wake.
};


struct Pause
{
  bool paused = false;
};


// A call that does not fit what is known, as the adapter found out.
struct Misfit
{
  std::string text;
  Log::Level level = Log::Level::ERROR;
};


// What the session brings.

// The sidecar is there, and wants a snapshot.
struct Welcomed
{
  uint32_t kindsMax = 0; // 0: what sidecars take by default.
  size_t chunkBytesMax = 0;
};


// It has applied the snapshot, and answers.
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


// A session could not even be begun.
struct NotStarted
{
  std::string why;
};


// The answer to a cycle, or a part of it.
struct Decided
{
  session::Decisions decisions;
};


// The time that was asked for has come, or it is soon. `silentMs` is how
// long the sidecar has owed an answer.
struct Wake
{
  int64_t silentMs = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_EVENTS_HPP__
