#include "adapter/objects.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <stout/uuid.hpp>

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

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


// Whether `Resources::shrink` would refuse to split it.
bool isIndivisible(const Resource::DiskInfo& disk)
{
  switch (formOf(disk)) {
    case wire::DISK_FORM_VOLUME:
    case wire::DISK_FORM_MOUNT:
    case wire::DISK_FORM_BLOCK: return true;
    case wire::DISK_FORM_RAW:
      // RAW disk without an id is divisible space.
      return disk.source().has_id();
    default: return false;
  }
}


// Whether the resource has nothing but a name, a type and a value.
bool isBare(const Resource& resource)
{
  return resource.reservations_size() == 0 && !resource.has_disk() &&
      !resource.has_revocable() && !resource.has_shared() &&
      !resource.has_provider_id();
}


const string& roleOf(const Resource& resource)
{
  static const string* const ANY = new string("*");
  if (resource.has_allocation_info()) {
    return resource.allocation_info().role();
  }
  return Resources::isReserved(resource) ? Resources::reservationRole(resource)
                                         : *ANY;
}


// Combines texts into a hash, like FNV-1a. The seed is secret, so that clients
// cannot provoke collisions.
class Hash
{
public:
  explicit Hash(uint64_t seed) : state(seed ^ 0xcbf29ce484222325u) {}

  void add(uint64_t number)
  {
    for (int i = 0; i < 8; ++i) {
      mix(static_cast<unsigned char>(number >> (8 * i)));
    }
  }

  // Adds the length first: "ab" and "c" must differ from "a" and "bc".
  void add(const string& text)
  {
    add(text.size());
    for (char each : text) {
      mix(static_cast<unsigned char>(each));
    }
  }

  uint64_t value() const { return state ^ (state >> 29); }

private:
  void mix(unsigned char byte) { state = (state ^ byte) * 0x100000001b3u; }

  uint64_t state;
};


// Independent of the order of labels.
uint64_t hashOf(const mesos::Labels& labels, uint64_t seed)
{
  uint64_t sum = labels.labels_size();
  for (const mesos::Label& label : labels.labels()) {
    Hash hash(seed);
    hash.add(label.key());
    hash.add(label.value());
    sum += hash.value();
  }
  return sum;
}


void add(const Resource::DiskInfo& disk, uint64_t seed, Hash* hash)
{
  const Resource::DiskInfo::Source& source = disk.source();
  hash->add(disk.has_persistence());
  hash->add(disk.persistence().id());
  hash->add(disk.has_source());
  hash->add(source.type());
  hash->add(source.path().root());
  hash->add(source.mount().root());
  hash->add(source.vendor());
  hash->add(source.id());
  hash->add(source.profile());
  hash->add(hashOf(source.metadata(), seed));
}


// Covers only fields that Mesos compares: equal objects must have equal keys.
uint64_t keyOf(const Resource& resource, uint64_t seed)
{
  Hash hash(seed);
  hash.add(resource.name());
  hash.add(resource.type());
  hash.add(resource.has_revocable());
  hash.add(resource.has_shared());
  hash.add(resource.provider_id().value());

  if (resource.has_disk()) {
    add(resource.disk(), seed, &hash);
  }

  for (const Resource::ReservationInfo& each : resource.reservations()) {
    hash.add(each.type());
    hash.add(each.role());
    hash.add(each.principal());
    hash.add(hashOf(each.labels(), seed));
  }

  // Indivisible objects of different sizes differ.
  hash.add(traitsOf(resource).unit);
  return hash.value();
}

} // namespace {


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
    case mesos::Value::SCALAR:
      return brain::countable(thousandths(resource.scalar()));
    case mesos::Value::RANGES: {
      brain::Spans spans;
      for (const mesos::Value::Range& range : resource.ranges().range()) {
        spans.push_back(brain::Span{range.begin(), range.end()});
      }
      brain::normalize(&spans);
      return brain::amountOf(spans);
    }
    case mesos::Value::SET: return int64_t(1000) * resource.set().item_size();
    default: return 0;
  }
}


brain::Traits traitsOf(const Resource& resource)
{
  brain::Traits traits;
  traits.name = resource.name();
  traits.type = resource.type() == mesos::Value::RANGES ? brain::Type::RANGES
      : resource.type() == mesos::Value::SET            ? brain::Type::SET
                                                        : brain::Type::SCALAR;
  traits.depth = resource.reservations_size();
  traits.revocable = resource.has_revocable();
  traits.shared = resource.has_shared();

  if (traits.depth > 0) {
    traits.reservedRole = Resources::reservationRole(resource);
    traits.principal =
        resource.reservations(resource.reservations_size() - 1).principal();
  }

  if (resource.has_disk()) {
    traits.form = formOf(resource.disk());
  }

  const bool whole = resource.has_shared() ||
      (resource.has_disk() && isIndivisible(resource.disk()));
  traits.unit = whole ? amountOf(resource) : 0;
  return traits;
}


Objects::Objects(const Define& _define)
  : define(_define), seed(std::hash<string>()(id::UUID::random().toString()))
{
}


bool Objects::isSame(const Row& row, const Resource& resource) const
{
  if (row.traits.unit > 0) {
    return Resources(row.object) == Resources(resource);
  }

  // Give both the same value, so that the comparison ignores it.
  Resource object = row.object;
  switch (resource.type()) {
    case mesos::Value::SCALAR:
      *object.mutable_scalar() = resource.scalar();
      break;
    case mesos::Value::RANGES:
      *object.mutable_ranges() = resource.ranges();
      break;
    default: *object.mutable_set() = resource.set(); break;
  }

  return Resources(object) == Resources(resource);
}


uint32_t Objects::append(const Resource& resource, uint64_t key)
{
  uint32_t resourceClass = static_cast<uint32_t>(rows.size());
  if (free.empty()) {
    rows.emplace_back();
  } else {
    resourceClass = free.back();
    free.pop_back();
  }

  Row& row = rows[resourceClass];
  row = Row();
  row.used = true;
  row.object = resource;
  row.traits = traitsOf(resource);
  row.key = key;
  define(resourceClass, row.traits);
  return resourceClass;
}


uint32_t Objects::bind(const Resource& resource)
{
  if (isBare(resource)) {
    hashmap<string, uint32_t>& names = bare[resource.type()];
    auto found = names.find(resource.name());
    if (found != names.end()) {
      return found->second;
    }

    Resource object = resource;
    object.clear_allocation_info();
    const uint32_t resourceClass = append(object, 0);
    names[resource.name()] = resourceClass;
    return resourceClass;
  }

  const uint64_t key = keyOf(resource, seed);
  Resource object = resource;
  object.clear_allocation_info();

  for (uint32_t resourceClass : special[key]) {
    if (isSame(rows[resourceClass], object)) {
      return resourceClass;
    }
  }

  const uint32_t resourceClass = append(object, key);
  special[key].push_back(resourceClass);
  return resourceClass;
}


// Returns false if there is no room for a new item.
bool Objects::number(Row* row, const string& item, uint64_t* result)
{
  const auto found = row->numbers.find(item);
  if (found != row->numbers.end()) {
    *result = found->second;
    return true;
  }

  const size_t bytes = 2 * item.size() + brain::ITEM_BYTES_MORE;
  if (row->itemBytes + bytes > brain::ITEM_BYTES_MAX - itemBytes) {
    return false;
  }

  row->itemBytes += bytes;
  itemBytes += bytes;
  *result = row->items.size();
  row->numbers[item] = *result;
  row->items.push_back(item);
  return true;
}


brain::Spans Objects::spansOf(Row* row, const Resource& resource)
{
  brain::Spans spans;

  for (const mesos::Value::Range& range : resource.ranges().range()) {
    spans.push_back(brain::Span{range.begin(), range.end()});
  }

  for (const string& item : resource.set().item()) {
    uint64_t place = 0;
    if (number(row, item, &place)) {
      spans.push_back(brain::Span{place, place});
    }
  }

  brain::normalize(&spans);
  return spans;
}


void Objects::add(const Resource& resource, int64_t copies, brain::Parts* parts)
{
  if (resource.type() > mesos::Value::SET) {
    return; // TEXT is not a resource type.
  }

  brain::Part part{0, 0, brain::Spans()};
  part.resourceClass = bind(resource);

  if (resource.type() == mesos::Value::SCALAR) {
    part.amount = brain::countable(thousandths(resource.scalar()), copies);
  } else {
    part.spans = spansOf(&rows[part.resourceClass], resource);
    part.amount = brain::amountOf(part.spans);
  }

  if (part.amount > 0) {
    parts->push_back(std::move(part));
  }
}


brain::Parts Objects::toParts(const Resources& resources)
{
  brain::Parts parts;
  parts.reserve(resources.size());

  for (const Resource& resource : resources) {
    const int64_t copies = resource.has_shared()
        ? static_cast<int64_t>(resources.count(resource))
        : 1;
    add(resource, copies, &parts);
  }

  brain::normalize(&parts);
  return parts;
}


vector<brain::RoleParts> Objects::toRoleParts(const Resources& resources)
{
  vector<brain::RoleParts> result;
  hashmap<string, size_t> places; // Used with more than one role.
  size_t place = 0;

  for (const Resource& resource : resources) {
    const string& role = roleOf(resource);

    // Common case: the same role as before.
    if (!result.empty() && result[place].role != role) {
      places.emplace(result[place].role, place);
      place = places.emplace(role, result.size()).first->second;
    }
    if (place == result.size()) {
      result.push_back(brain::RoleParts{role, brain::Parts()});
      result.back().parts.reserve(resources.size());
    }

    const int64_t copies = resource.has_shared()
        ? static_cast<int64_t>(resources.count(resource))
        : 1;
    add(resource, copies, &result[place].parts);
  }

  for (brain::RoleParts& each : result) {
    brain::normalize(&each.parts);
  }

  return result;
}


void Objects::addTo(const brain::Part& part, Resources* resources) const
{
  const Row& row = rows[part.resourceClass];
  Resource object = row.object;

  if (row.traits.unit > 0) {
    for (int64_t left = part.amount; left >= row.traits.unit;
         left -= row.traits.unit) {
      *resources += object;
    }
    return;
  }

  if (row.traits.type == brain::Type::SCALAR) {
    object.mutable_scalar()->set_value(static_cast<double>(part.amount) / 1000);
  } else if (row.traits.type == brain::Type::RANGES) {
    object.mutable_ranges()->clear_range();
    for (const brain::Span& span : part.spans) {
      mesos::Value::Range* range = object.mutable_ranges()->add_range();
      range->set_begin(span.begin);
      range->set_end(span.end);
    }
  } else {
    object.mutable_set()->clear_item();
    for (const brain::Span& span : part.spans) {
      for (uint64_t i = span.begin; i <= span.end && i < row.items.size();
           ++i) {
        object.mutable_set()->add_item(row.items[i]);
      }
    }
  }

  *resources += object;
}


Resources Objects::toResources(const brain::Parts& parts) const
{
  Resources resources;
  for (const brain::Part& part : parts) {
    if (part.resourceClass < rows.size() && rows[part.resourceClass].used) {
      addTo(part, &resources);
    }
  }
  return resources;
}


void Objects::forget(const vector<uint32_t>& classes)
{
  for (uint32_t resourceClass : classes) {
    Row& row = rows[resourceClass];

    if (isBare(row.object)) {
      bare[row.object.type()].erase(row.object.name());
    } else {
      vector<uint32_t>& alike = special[row.key];
      alike.erase(
          std::remove(alike.begin(), alike.end(), resourceClass), alike.end());
      if (alike.empty()) {
        special.erase(row.key);
      }
    }

    itemBytes -= row.itemBytes;
    row = Row();
    free.push_back(resourceClass);
    ++generation_;
  }
}

} // namespace adapter {
} // namespace allocator {
