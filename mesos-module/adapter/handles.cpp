#include "adapter/handles.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <glog/logging.h>

#include "adapter/text.hpp"

#include "session/decisions.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

// Of the names that may still come, so many find room for a rest kind.
constexpr size_t NEW_NAMES = 8;


wire::DiskForm formOf(const Resource::DiskInfo& disk)
{
  if (disk.has_persistence()) {
    return wire::DISK_FORM_VOLUME;
  }

  if (!disk.has_source()) {
    return wire::DISK_FORM_UNSPECIFIED;
  }

  switch (disk.source().type()) {
    case Resource::DiskInfo::Source::PATH: return wire::DISK_FORM_PATH;
    case Resource::DiskInfo::Source::MOUNT: return wire::DISK_FORM_MOUNT;
    case Resource::DiskInfo::Source::BLOCK: return wire::DISK_FORM_BLOCK;
    case Resource::DiskInfo::Source::RAW: return wire::DISK_FORM_RAW;
    default: return wire::DISK_FORM_UNSPECIFIED;
  }
}


bool isIndivisible(const Resource::DiskInfo& disk)
{
  switch (formOf(disk)) {
    case wire::DISK_FORM_VOLUME:
    case wire::DISK_FORM_MOUNT:
    case wire::DISK_FORM_BLOCK: return true;
    case wire::DISK_FORM_RAW:
      // Without an id it is space that can be divided.
      return disk.source().has_id();
    default: return false;
  }
}


string keyOf(const Resource& resource, const Traits& traits)
{
  string key = resource.name();
  key += '\0';
  key += traits.depth > 0 ? Resources::reservationRole(resource) : string();
  key += '\0';
  key += std::to_string(traits.depth);

  for (int each :
       {int(traits.type),
        int(traits.revocable),
        int(traits.shared),
        int(traits.form),
        int(traits.indivisible)}) {
    key += static_cast<char>('0' + each);
  }

  return key;
}


wire::ValueType typeOf(mesos::Value::Type type)
{
  switch (type) {
    case mesos::Value::RANGES: return wire::VALUE_TYPE_RANGES;
    case mesos::Value::SET: return wire::VALUE_TYPE_SET;
    default: return wire::VALUE_TYPE_SCALAR;
  }
}


wire::Kind describe(const Resource& resource, const Traits& traits)
{
  wire::Kind kind;
  kind.set_name(toText(resource.name()));
  kind.set_type(typeOf(traits.type));
  kind.set_revocable(traits.revocable);
  kind.set_shared(traits.shared);
  kind.set_reservation_depth(traits.depth);
  kind.set_form(traits.form);
  kind.set_indivisible(traits.indivisible);

  if (traits.depth > 0) {
    kind.set_reserved_role(toText(Resources::reservationRole(resource)));
  }

  return kind;
}

} // namespace {


Traits::Traits(const Resource& resource)
  : type(resource.type()),
    depth(resource.reservations_size()),
    revocable(resource.has_revocable()),
    shared(resource.has_shared()),
    form(
        resource.has_disk() ? formOf(resource.disk())
                            : wire::DISK_FORM_UNSPECIFIED),
    indivisible(resource.has_disk() && isIndivisible(resource.disk()))
{
}


bool Traits::plain() const
{
  return depth == 0 && !revocable && !shared && !indivisible &&
      form == wire::DISK_FORM_UNSPECIFIED && type != mesos::Value::TEXT;
}


int64_t thousandths(const mesos::Value::Scalar& scalar)
{
  const double value = scalar.value() * 1000;

  if (!(value > 0)) {
    return 0;
  }

  constexpr double MOST = static_cast<double>(session::AMOUNT_MAX);
  return value < MOST ? std::llround(value) : session::AMOUNT_MAX;
}


int64_t amountOf(const Resource& resource)
{
  switch (resource.type()) {
    case mesos::Value::SCALAR: return thousandths(resource.scalar());
    case mesos::Value::RANGES: {
      constexpr uint64_t MOST = session::AMOUNT_MAX / 1000;
      uint64_t count = 0;
      for (const mesos::Value::Range& range : resource.ranges().range()) {
        const uint64_t more = range.end() - range.begin();
        count = more < MOST ? std::min(MOST, count + more + 1) : MOST;
      }
      return static_cast<int64_t>(count * 1000);
    }
    case mesos::Value::SET: return int64_t(1000) * resource.set().item_size();
    default: return 0;
  }
}


constexpr uint32_t KindTable::NONE;
constexpr size_t KindTable::MOST_DEFAULT;


uint32_t KindTable::intern(const Resource& resource)
{
  const uint32_t found = find(resource);
  if (found != NONE) {
    return found;
  }

  const Traits traits(resource);
  const string& name = resource.name();

  const bool newName = rests.count(name) == 0;
  if (newName) {
    rests[name] = NONE;
    ++restsMissing;
  }

  // The first kind of a name may take room that is kept for new names.
  const size_t reserved = restsMissing + (newName ? 0 : NEW_NAMES);
  const uint32_t number = kinds.size() + reserved < most
      ? add(describe(resource, traits))
      : internRest(name);

  if (number != NONE) {
    if (traits.plain()) {
      plain[traits.type][name] = number;
    } else {
      special[keyOf(resource, traits)] = number;
    }
  }

  return number;
}


uint32_t KindTable::internRest(const string& name)
{
  uint32_t& rest = rests.at(name);

  if (rest == NONE && kinds.size() < most) {
    wire::Kind kind;
    kind.set_name(toText(name));
    kind.set_type(wire::VALUE_TYPE_SCALAR);
    kind.set_rest(true);
    rest = add(std::move(kind));
    --restsMissing;

    LOG(WARNING) << "There are more kinds of '" << name << "' (by reserved"
                 << " role, form of disk, ...) than the " << most
                 << " that the sidecar keeps apart; it is told the others as"
                 << " one amount, which is offered as a whole";
  }

  return rest;
}


uint32_t KindTable::add(wire::Kind&& kind)
{
  const uint32_t number = static_cast<uint32_t>(kinds.size());
  kinds.emplace_back();
  kinds.back().Swap(&kind);
  kinds.back().set_kind(number);
  return number;
}


uint32_t KindTable::find(const Resource& resource) const
{
  const Traits traits(resource);

  if (traits.plain()) {
    auto found = plain[traits.type].find(resource.name());
    return found == plain[traits.type].end() ? NONE : found->second;
  }

  auto found = special.find(keyOf(resource, traits));
  return found == special.end() ? NONE : found->second;
}


vector<wire::Kind> KindTable::takeNew()
{
  vector<wire::Kind> result(kinds.begin() + taken, kinds.end());
  taken = kinds.size();
  return result;
}


uint32_t RoleTable::bind(const string& path)
{
  const uint32_t known = table.find(path);
  if (known != table.NONE) {
    return known;
  }

  const size_t slash = path.rfind('/');
  if (slash != string::npos) {
    bind(path.substr(0, slash));
  }

  wire::Role role;
  role.set_role(table.bind(path));
  role.set_path(toText(path));
  fresh.push_back(role);
  return role.role();
}


vector<wire::Role> RoleTable::takeNew()
{
  vector<wire::Role> result = std::move(fresh);
  fresh.clear();
  return result;
}


void RoleTable::clear()
{
  table.clear();
  fresh.clear();
}

} // namespace adapter {
} // namespace allocator {
