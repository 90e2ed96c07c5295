#include "adapter/handles.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <glog/logging.h>

#include "adapter/text.hpp"

#include "client/decisions.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

// Whether the id of a disk names a single volume of a storage.
bool isVolume(const Resource::DiskInfo::Source& source)
{
  return source.type() == Resource::DiskInfo::Source::RAW ||
    source.type() == Resource::DiskInfo::Source::BLOCK;
}


// Everything but the value and the allocation, byte by byte. Single
// volumes are not told apart, for there may be thousands of them, and the
// sidecar's books are dense by kind; that a volume is one is kept.
string keyOf(const Resource& resource)
{
  Resource key = resource;
  key.clear_scalar();
  key.clear_ranges();
  key.clear_set();
  key.clear_allocation_info();

  if (key.has_disk()) {
    key.mutable_disk()->clear_volume();

    if (key.disk().has_persistence()) {
      key.mutable_disk()->mutable_persistence()->clear_principal();
      key.mutable_disk()->mutable_persistence()->set_id("");
    }

    if (key.disk().has_source() && isVolume(key.disk().source())) {
      // Without an id it is space that can be divided.
      const bool named = key.disk().source().has_id();
      key.mutable_disk()->mutable_source()->clear_metadata();
      key.mutable_disk()->mutable_source()->clear_id();
      if (named) {
        key.mutable_disk()->mutable_source()->set_id("");
      }
    }
  }

  return key.SerializePartialAsString();
}


void describeReservations(const Resource& resource, wire::Kind* kind)
{
  for (const Resource::ReservationInfo& info : resource.reservations()) {
    wire::Reservation* reservation = kind->add_reservations();
    reservation->set_type(
        info.type() == Resource::ReservationInfo::STATIC
          ? wire::Reservation::TYPE_STATIC
          : wire::Reservation::TYPE_DYNAMIC);
    reservation->set_role(toText(info.role()));
    reservation->set_principal(toText(info.principal()));

    for (const mesos::Label& label : info.labels().labels()) {
      (*reservation->mutable_labels())[toText(label.key())] =
        toText(label.value());
    }
  }
}


wire::Disk::Source sourceOf(const Resource::DiskInfo::Source& source)
{
  switch (source.type()) {
    case Resource::DiskInfo::Source::PATH: return wire::Disk::SOURCE_PATH;
    case Resource::DiskInfo::Source::MOUNT: return wire::Disk::SOURCE_MOUNT;
    case Resource::DiskInfo::Source::BLOCK: return wire::Disk::SOURCE_BLOCK;
    case Resource::DiskInfo::Source::RAW: return wire::Disk::SOURCE_RAW;
    default: return wire::Disk::SOURCE_UNSPECIFIED;
  }
}


// Whether `Resources::shrink` would refuse to split it.
bool isAtomic(const Resource& resource)
{
  mesos::Value::Scalar half;
  half.set_value(resource.scalar().value() / 2);
  Resource copy = resource;
  return !Resources::shrink(&copy, half);
}


void describeDisk(const Resource& resource, wire::Kind* kind)
{
  const Resource::DiskInfo& info = resource.disk();
  wire::Disk* disk = kind->mutable_disk();
  disk->set_atomic(isAtomic(resource));

  if (info.has_source()) {
    const Resource::DiskInfo::Source& source = info.source();
    disk->set_source(sourceOf(source));
    disk->set_profile(toText(source.profile()));

    if (isVolume(source)) {
      return;
    }

    disk->set_source_id(
        toText(
            source.has_id() ? source.id()
              : source.has_mount() ? source.mount().root()
              : source.path().root()));
  }
}


wire::Kind describe(const Resource& resource)
{
  wire::Kind kind;
  kind.set_name(toText(resource.name()));
  kind.set_type(
      resource.type() == mesos::Value::RANGES ? wire::VALUE_TYPE_RANGES
        : resource.type() == mesos::Value::SET ? wire::VALUE_TYPE_SET
        : wire::VALUE_TYPE_SCALAR);
  kind.set_revocable(resource.has_revocable());
  kind.set_shared(resource.has_shared());
  kind.set_provider_id(toText(resource.provider_id().value()));
  describeReservations(resource, &kind);

  if (resource.has_disk()) {
    describeDisk(resource, &kind);
  }

  return kind;
}

} // namespace {


bool isPlain(const Resource& resource)
{
  return resource.reservations_size() == 0 && !resource.has_disk() &&
    !resource.has_revocable() && !resource.has_shared() &&
    !resource.has_provider_id();
}


int64_t thousandths(const mesos::Value::Scalar& scalar)
{
  const double value = scalar.value() * 1000;

  if (!(value > 0)) {
    return 0;
  }

  constexpr double MOST = static_cast<double>(client::AMOUNT_MAX);
  return value < MOST ? std::llround(value) : client::AMOUNT_MAX;
}


int64_t amountOf(const Resource& resource)
{
  switch (resource.type()) {
    case mesos::Value::SCALAR:
      return thousandths(resource.scalar());
    case mesos::Value::RANGES: {
      constexpr uint64_t MOST = client::AMOUNT_MAX / 1000;
      uint64_t count = 0;
      for (const mesos::Value::Range& range : resource.ranges().range()) {
        const uint64_t more = range.end() - range.begin();
        count = more < MOST ? std::min(MOST, count + more + 1) : MOST;
      }
      return static_cast<int64_t>(count * 1000);
    }
    case mesos::Value::SET:
      return int64_t(1000) * resource.set().item_size();
    default:
      return 0;
  }
}


uint32_t KindTable::intern(const Resource& resource)
{
  const bool simple = isPlain(resource);
  hashmap<string, uint32_t>& table = simple ? plain : special;
  const string key = simple ? resource.name() : keyOf(resource);

  auto found = table.find(key);
  if (found != table.end()) {
    return found->second;
  }

  const uint32_t number = static_cast<uint32_t>(kinds.size());
  LOG_IF(WARNING, number == KINDS_USUAL)
    << "There are more than " << KINDS_USUAL << " kinds of resources (by"
    << " name, reservations, disk, ...), the last one " << resource
    << "; a sidecar may refuse so many, and then the module decides itself";
  kinds.push_back(describe(resource));
  kinds.back().set_kind(number);
  table[key] = number;
  return number;
}


Option<uint32_t> KindTable::find(const Resource& resource) const
{
  const bool simple = isPlain(resource);
  const hashmap<string, uint32_t>& table = simple ? plain : special;
  auto found = table.find(simple ? resource.name() : keyOf(resource));

  if (found == table.end()) {
    return None();
  }

  return found->second;
}


vector<wire::Kind> KindTable::takeNew()
{
  vector<wire::Kind> result(kinds.begin() + taken, kinds.end());
  taken = kinds.size();
  return result;
}


void KindTable::clear()
{
  kinds.clear();
  plain.clear();
  special.clear();
  taken = 0;
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
