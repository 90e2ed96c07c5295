#include "brain/books/kinds.hpp"

#include <algorithm>
#include <utility>

#include "brain/user_input/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Number of kinds reserved for the overflow kinds of future names.
constexpr size_t NEW_NAMES = 8;


// Resources that agents have by default.
bool isMesosOwn(const Traits& traits)
{
  const std::string& name = traits.name;
  return name == "ports" ? traits.type == Type::RANGES
                         : traits.type == Type::SCALAR &&
          (name == "cpus" || name == "mem" || name == "disk" || name == "gpus");
}


// The reporter that a kind counts against: the reservation's principal if it
// has one; else the agent or framework that reported it; else, for reservations
// by operators, the role.
std::string reporterOf(const ResourceClasses::Row& resourceClass)
{
  const Traits& traits = resourceClass.traits;
  if (!traits.principal.empty()) {
    return "principal " + traits.principal;
  }
  if (resourceClass.reporter != 0) {
    return std::to_string(resourceClass.reporter);
  }
  return "role " + traits.reservedRole.substr(0, traits.reservedRole.find('/'));
}


wire::ValueType typeOf(Type type)
{
  switch (type) {
    case Type::RANGES: return wire::VALUE_TYPE_RANGES;
    case Type::SET: return wire::VALUE_TYPE_SET;
    default: return wire::VALUE_TYPE_SCALAR;
  }
}


// The depth to report: the sidecar does not need exact values beyond the limit.
uint32_t depthOf(const Traits& traits)
{
  return std::min<uint32_t>(traits.depth, RESERVATION_DEPTH_MAX);
}


std::string keyOf(const Traits& traits)
{
  std::string key = traits.name;
  key += '\0';
  key += traits.reservedRole;
  key += '\0';
  key += std::to_string(depthOf(traits));

  for (int each :
       {int(traits.type),
        int(traits.revocable),
        int(traits.shared),
        int(traits.form),
        int(traits.unit > 0)}) {
    key += static_cast<char>('0' + each);
  }

  return key;
}


wire::Kind describe(const ResourceClasses::Row& resourceClass)
{
  const Traits& traits = resourceClass.traits;
  wire::Kind kind;
  kind.set_name(toText(traits.name));
  kind.set_type(typeOf(traits.type));
  kind.set_revocable(traits.revocable);
  kind.set_shared(traits.shared);
  kind.set_reservation_depth(depthOf(traits));
  kind.set_form(traits.form);
  kind.set_indivisible(traits.unit > 0);

  if (traits.depth > 0) {
    kind.set_reserved_role(resourceClass.reportedRole);
  }

  return kind;
}

} // namespace {


constexpr uint32_t Kinds::NONE;
constexpr size_t Kinds::MOST_DEFAULT;
const char* const Kinds::OTHERS = "(other resources)";


Kinds::Kinds(size_t _most) : most(_most > 0 ? _most : 1)
{
  shares[PLAIN].room = most;
  shares[NAMED].room = most * KINDS_NAMED_EIGHTHS / 8;
  shares[RESERVED].room = most * KINDS_RESERVED_EIGHTHS / 8;
}


bool Kinds::Share::hasRoom(const std::string& reporter, size_t count) const
{
  auto found = byReporter.find(reporter);
  const size_t own = found == byReporter.end() ? 0 : found->second;
  return taken + count <= room && KINDS_FREE_OF_OWN * own < room - taken;
}


bool Kinds::hasManyUnused() const
{
  return std::any_of(shares.begin(), shares.end(), [](const Share& share) {
    return share.idle > 0 && KINDS_WORN_OF_ROOM * share.idle >= share.room;
  });
}


uint32_t Kinds::find(uint32_t resourceClass) const
{
  return resourceClass < ofClass.size() ? ofClass[resourceClass] : NONE;
}


uint32_t Kinds::bind(uint32_t resourceClass, const ResourceClasses& table)
{
  const uint32_t known = find(resourceClass);
  if (known != NONE) {
    return known;
  }

  if (resourceClass >= ofClass.size()) {
    ofClass.resize(resourceClass + 1, NONE);
  }

  const uint32_t kind = number(table.row(resourceClass));
  ofClass[resourceClass] = kind;
  if (kind != NONE && classes[kind]++ == 0) {
    --shares[roomOf[kind]].idle;
  }
  return kind;
}


void Kinds::forget(uint32_t resourceClass)
{
  const uint32_t kind = find(resourceClass);
  if (kind != NONE) {
    ofClass[resourceClass] = NONE;
    if (--classes[kind] == 0) {
      ++shares[roomOf[kind]].idle;
    }
  }
}


uint32_t Kinds::number(const ResourceClasses::Row& resourceClass)
{
  const Traits& traits = resourceClass.traits;
  const std::string key = keyOf(traits);
  auto found = byTraits.find(key);
  if (found != byTraits.end()) {
    return found->second;
  }

  const bool ownName = isMesosOwn(traits);
  const Room room = !ownName ? NAMED : traits.depth > 0 ? RESERVED : PLAIN;
  Share& share = shares[room];
  const std::string reporter =
      room == PLAIN ? std::string() : reporterOf(resourceClass);

  // A new name also reserves an overflow kind.
  const bool newName = overflows.count(traits.name) == 0;
  const size_t count = newName && !ownName ? 2 : 1;
  const bool hasShare = room == PLAIN || share.hasRoom(reporter, count);
  if (!hasShare && newName && !ownName) {
    reserveOverflow(OTHERS);
    return overflow(OTHERS, resourceClass.reporter);
  }
  reserveOverflow(traits.name);

  // The first kind of a name may use the room reserved for new names.
  const size_t kept = overflowsMissing + (newName ? 0 : NEW_NAMES);
  if (!hasShare || kinds.size() + kept >= most) {
    return overflow(traits.name, resourceClass.reporter);
  }

  share.taken += count;
  if (room != PLAIN) {
    share.byReporter[reporter] += count;
  }
  const uint32_t kind = append(describe(resourceClass), room);
  byTraits[key] = kind;
  return kind;
}


void Kinds::reserveOverflow(const std::string& name)
{
  overflowsMissing += overflows.emplace(name, NONE).second ? 1 : 0;
}


uint32_t Kinds::overflow(const std::string& name, Reporter reporter)
{
  if (over.insert(reporter).second) {
    newlyOver.push_back(reporter);
  }

  uint32_t& overflow = overflows[name];

  if (overflow == NONE && kinds.size() < most) {
    wire::Kind kind;
    kind.set_name(toText(name));
    kind.set_type(wire::VALUE_TYPE_SCALAR);
    kind.set_rest(true);
    overflow = append(std::move(kind), PLAIN);
    --overflowsMissing;
    crowded.push_back(name);
  }

  return overflow;
}


uint32_t Kinds::append(wire::Kind&& kind, Room room)
{
  const uint32_t number = static_cast<uint32_t>(kinds.size());
  kinds.emplace_back();
  kinds.back().Swap(&kind);
  kinds.back().set_kind(number);
  roomOf.push_back(room);
  classes.push_back(0);
  ++shares[room].idle;
  return number;
}


Amounts Kinds::toAmounts(const Parts& parts, const ResourceClasses& table)
{
  Amounts result;
  result.reserve(parts.size());

  for (const Part& part : parts) {
    const uint32_t kind = bind(part.resourceClass, table);
    if (kind != NONE) {
      result.emplace_back(kind, part.amount);
    }
  }

  std::sort(result.begin(), result.end());

  size_t last = 0;
  for (size_t i = 1; i < result.size(); ++i) {
    if (result[i].first == result[last].first) {
      result[last].second += result[i].second;
    } else {
      result[++last] = result[i];
    }
  }

  result.resize(std::min(result.size(), last + 1));
  return result;
}


std::vector<std::string> Kinds::takeCrowded()
{
  std::vector<std::string> result;
  result.swap(crowded);
  return result;
}


std::vector<Reporter> Kinds::takeNewlyOver()
{
  std::vector<Reporter> result;
  result.swap(newlyOver);
  return result;
}


std::vector<wire::Kind> Kinds::takeNew()
{
  std::vector<wire::Kind> result(kinds.begin() + taken, kinds.end());
  taken = kinds.size();
  return result;
}

} // namespace brain {
} // namespace allocator {
