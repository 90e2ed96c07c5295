#include "brain/books/names.hpp"

#include <algorithm>
#include <utility>

#include "brain/user_input/text.hpp"

namespace allocator {
namespace brain {
namespace {

// A name that cannot be reported unchanged is reported by its beginning, at
// most this long, and a hash.
constexpr size_t SHOWN_BYTES_MAX = 80;

} // namespace {


constexpr uint32_t Handles::NONE;


uint32_t Handles::bind(const std::string& id)
{
  auto found = handles.find(id);
  if (found != handles.end()) {
    return found->second;
  }

  uint32_t handle = end();
  if (free.empty()) {
    rows.emplace_back();
  } else {
    handle = free.top();
    free.pop();
  }

  rows[handle - 1].id = id;
  rows[handle - 1].bound = true;
  handles[id] = handle;
  return handle;
}


void Handles::release(uint32_t handle, uint64_t revision)
{
  const std::string* bearer = id(handle);
  if (bearer == nullptr) {
    return;
  }

  handles.erase(*bearer);
  rows[handle - 1] = Row();
  rows[handle - 1].revision = revision;
  free.push(handle);
}


uint32_t Handles::find(const std::string& id) const
{
  auto found = handles.find(id);
  return found == handles.end() ? NONE : found->second;
}


const std::string* Handles::id(uint32_t handle) const
{
  const bool bound = handle != NONE && handle < end() && rows[handle - 1].bound;
  return bound ? &rows[handle - 1].id : nullptr;
}


void Handles::sent(uint32_t handle, uint64_t revision)
{
  if (id(handle) != nullptr) {
    rows[handle - 1].revision = revision;
  }
}


uint64_t Handles::revision(uint32_t handle) const
{
  return id(handle) == nullptr ? 0 : rows[handle - 1].revision;
}


bool Handles::changedSince(uint32_t handle, uint64_t known) const
{
  return handle != NONE && handle < end() && rows[handle - 1].revision > known;
}


bool Roles::isPath(const std::string& path)
{
  return !path.empty() && path.front() != '/' && path.back() != '/' &&
      path.find("//") == std::string::npos;
}


namespace {

// Calls `each(length, level)` for each proper ancestor path that may be in the
// tree, top down.
template <typename Each>
void forAbove(const std::string& path, const Each& each)
{
  size_t slash = path.find('/');

  for (size_t level = 1; slash != std::string::npos; ++level) {
    if (level > 1 && (level >= ROLE_DEPTH_MAX || slash > ROLE_BYTES_MAX)) {
      break;
    }
    each(slash, level);
    slash = path.find('/', slash + 1);
  }
}


// The path to report for a role, given the path reported for its parent
// (`above`), whose own path has `length` bytes. Depends on the path only.
std::string
reportedBelow(const std::string& above, size_t length, const std::string& path)
{
  const size_t begin = above.empty() ? 0 : length + 1;
  std::string name = path.substr(std::min(begin, path.size()));

  if (name.empty() || name.find('/') != std::string::npos ||
      name.size() > TEXT_BYTES_MAX || !isText(name)) {
    // Valid Mesos roles contain no blanks, so this cannot clash.
    name = toShown(name, SHOWN_BYTES_MAX);
    std::replace(name.begin(), name.end(), '/', '.');
    name += " " + markOf(path);
  }

  return above.empty() ? name : above + "/" + name;
}

} // namespace {


const char* const Roles::OTHERS = "(other roles)";


uint32_t Roles::number(const std::string& path, size_t levels)
{
  const uint32_t known = find(path);
  return known != 0 && standing(known) == Standing::SOUGHT
      ? known
      : place(path, levels, Standing::SOUGHT);
}


uint32_t Roles::use(const std::string& path, size_t levelsMax)
{
  const uint32_t known = find(path);
  if (known != 0 && standing(known) != Standing::FOLDED) {
    return known;
  }

  const size_t lacks = lacking(path, ROLE_DEPTH_MAX, Standing::USED);
  return lacks <= levelsMax && count(Standing::USED) + lacks <= USED_ROLES_MAX
      ? place(path, ROLE_DEPTH_MAX, Standing::USED)
      : note(path);
}


uint32_t Roles::note(const std::string& path)
{
  const uint32_t known = find(path);
  return known != 0 ? known : place(path, 1, Standing::FOLDED);
}


size_t Roles::lacking(const std::string& path, size_t levels, Standing standing)
    const
{
  size_t result = 0;
  auto add = [&](uint32_t role, size_t level) {
    const bool comes = role == 0 && (level == 1 || level < levels);
    result += comes || (role != 0 && rows[role].standing < standing) ? 1 : 0;
  };

  forAbove(path, [&](size_t length, size_t level) {
    add(find(path.substr(0, length)), level);
  });
  add(find(path), 1);
  return result;
}


// Binds a role, its top-level role and ancestors up to `levels`; the parent is
// the nearest ancestor that exists.
uint32_t Roles::place(const std::string& path, size_t levels, Standing standing)
{
  uint32_t parent = 0;
  bool lacks = false;

  forAbove(path, [&](size_t length, size_t level) {
    const std::string above = path.substr(0, length);
    uint32_t role = find(above);
    if (role == 0 && (level == 1 || level < levels)) {
      role = append(above, parent);
      adopt(role);
    }
    lacks = lacks || role == 0;
    parent = role == 0 ? parent : role;
  });

  uint32_t role = find(path);
  if (role == 0) {
    role = append(path, parent);
    adopt(role);
  }

  raise(role, standing);
  if (lacks && standing == Standing::FOLDED) {
    loose[path] = role;
  }
  return role;
}


// Adds an unknown role as folded.
uint32_t Roles::append(const std::string& path, uint32_t parent)
{
  uint32_t role = static_cast<uint32_t>(rows.size());
  if (free.empty()) {
    rows.emplace_back();
  } else {
    role = free.back();
    free.pop_back();
  }

  Row& row = rows[role];
  row.path = path;
  row.parent = parent;
  row.top = parent == 0 ? role : rows[parent].top;
  row.bound = true;
  numbers[path] = role;
  ++counts[size_t(Standing::FOLDED)];
  return role;
}


// Makes the new role the parent of those folded descendants that were children
// of its parent.
void Roles::adopt(uint32_t role)
{
  const std::string below = rows[role].path + "/";

  for (auto each = loose.lower_bound(below);
       each != loose.end() && each->first.compare(0, below.size(), below) == 0;
       ++each) {
    Row& row = rows[each->second];
    if (row.parent == rows[role].parent) {
      row.parent = role;
      adopted.push_back(Adoption{role, each->second});
    }
  }
}


std::vector<Roles::Adoption> Roles::takeAdopted()
{
  std::vector<Adoption> result;
  result.swap(adopted);
  return result;
}


// Raises a role and its ancestors, top down.
void Roles::raise(uint32_t role, Standing standing)
{
  std::vector<uint32_t> low;
  for (uint32_t each = role; each != 0 && rows[each].standing < standing;
       each = rows[each].parent) {
    low.push_back(each);
  }

  for (auto each = low.rbegin(); each != low.rend(); ++each) {
    set(*each, standing);
  }
}


void Roles::set(uint32_t role, Standing standing)
{
  Row& row = rows[role];
  const Standing before = row.standing;
  --counts[size_t(before)];
  ++counts[size_t(standing)];
  row.standing = standing;

  if (standing == Standing::FOLDED) {
    odd.erase(row.reported);
    row.reported.clear();
    loose[row.path] = role;
  } else if (before == Standing::FOLDED) {
    loose.erase(row.path);
    const Row& above = rows[row.parent];
    std::string as =
        reportedBelow(reportedPath(row.parent), above.path.size(), row.path);
    if (as != row.path) {
      as += odd.insert(as).second ? "" : " #" + std::to_string(role);
      row.reported = as;
    }
    if (row.handle != 0) {
      row.before = row.before == 0 ? row.handle : row.before;
      row.handle = 0;
      moving.push_back(role);
    }
  }
}


std::string Roles::reportedPathOf(const std::string& path) const
{
  std::string above;
  size_t length = 0;

  auto addNext = [&](const std::string& next) {
    const uint32_t role = find(next);
    above = role != 0 && standing(role) != Standing::FOLDED
        ? reportedPath(role)
        : reportedBelow(above, length, next);
    length = next.size();
  };

  forAbove(path, [&](size_t end, size_t) { addNext(path.substr(0, end)); });
  addNext(path);
  return above;
}


// Whether the session knows the role by a handle of its own.
bool Roles::hasOwnHandle(uint32_t role) const
{
  return rows[role].bound && rows[role].handle != 0 &&
      rows[role].standing != Standing::FOLDED;
}


// Marks all ancestors of marked roles.
void Roles::spread(std::vector<bool>* marked) const
{
  marked->resize(rows.size());

  for (uint32_t role = 1; role < rows.size(); ++role) {
    if (rows[role].bound && (*marked)[role]) {
      for (uint32_t each = role; each != 0; each = rows[each].parent) {
        (*marked)[each] = true;
      }
    }
  }
}


std::vector<uint32_t> Roles::removeUnused(
    std::vector<bool> inUse,
    std::vector<bool> sought)
{
  spread(&inUse);
  sought.resize(rows.size());
  idle = 0;

  for (uint32_t role = 1; role < rows.size(); ++role) {
    if (hasOwnHandle(role)) {
      idle += inUse[role] ? 0 : 1;
      inUse[role] = true;
      sought[role] = sought[role] || rows[role].standing == Standing::SOUGHT;
    }
  }

  spread(&inUse);
  spread(&sought);

  std::vector<uint32_t> given;
  for (uint32_t role = 1; role < rows.size(); ++role) {
    if (rows[role].bound && !inUse[role]) {
      numbers.erase(rows[role].path);
      loose.erase(rows[role].path);
      odd.erase(rows[role].reported);
      --counts[size_t(rows[role].standing)];
      rows[role] = Row();
      given.push_back(role);
    }
  }

  free.insert(free.end(), given.begin(), given.end());
  std::sort(free.begin(), free.end(), std::greater<uint32_t>());

  std::vector<bool> settled(rows.size());
  for (uint32_t role = 1; role < rows.size(); ++role) {
    lower(role, sought, &settled);
  }
  return given;
}


// Lowers a role that is no longer sought to USED if there is room, else to
// FOLDED; a role that the session knows keeps its standing. Ancestors go first,
// because descendants of a folded role are folded.
void Roles::lower(
    uint32_t role,
    const std::vector<bool>& sought,
    std::vector<bool>* settled)
{
  if (role == 0 || !rows[role].bound || (*settled)[role]) {
    return;
  }

  (*settled)[role] = true;
  const uint32_t parent = rows[role].parent;
  lower(parent, sought, settled);

  const Standing before = standing(role);
  const bool below = parent != 0 && standing(parent) == Standing::FOLDED;
  const bool full =
      before == Standing::SOUGHT && count(Standing::USED) >= USED_ROLES_MAX;

  if (before != Standing::FOLDED && !sought[role] && !hasOwnHandle(role)) {
    set(role, below || full ? Standing::FOLDED : Standing::USED);
  }
}


uint32_t Roles::find(const std::string& path) const
{
  auto found = numbers.find(path);
  return found == numbers.end() ? 0 : found->second;
}


bool Roles::isWithin(uint32_t role, const std::string& ancestor) const
{
  const std::string& below = rows[role].path;
  const size_t length = ancestor.size();

  return below.size() >= length &&
      (below.size() == length || below[length] == '/') &&
      below.compare(0, length, ancestor) == 0;
}


void Roles::forgetHandles()
{
  for (Row& row : rows) {
    row.handle = row.before = 0;
  }
  handles.clear();
  fresh.clear();
  moving.clear();
  others = 0;
  idle = 0;
}


// Assigns the next handle.
uint32_t Roles::assignHandle(uint32_t role, const std::string& as)
{
  handles.push_back(role);
  const uint32_t handle = static_cast<uint32_t>(handles.size());

  wire::Role message;
  message.set_role(handle);
  message.set_path(as);
  fresh.push_back(message);
  return handle;
}


uint32_t Roles::handle(uint32_t role)
{
  std::vector<uint32_t> withoutHandle;
  for (uint32_t each = role; each != 0 && rows[each].handle == 0;
       each = rows[each].parent) {
    withoutHandle.push_back(each);
  }

  for (auto each = withoutHandle.rbegin(); each != withoutHandle.rend();
       ++each) {
    Row& row = rows[*each];
    if (row.standing != Standing::FOLDED) {
      row.handle = assignHandle(*each, reportedPath(*each));
    } else if (row.parent != 0) {
      row.handle = rows[row.parent].handle;
    } else {
      others = others == 0 ? assignHandle(0, OTHERS) : others;
      row.handle = others;
    }
  }

  return rows[role].handle;
}


uint32_t Roles::holdHandle(uint32_t role)
{
  return rows[role].before != 0 ? rows[role].before : handle(role);
}


void Roles::moved()
{
  for (uint32_t role : moving) {
    rows[role].before = 0;
  }
  moving.clear();
}


uint32_t Roles::ofHandle(uint32_t handle) const
{
  return handle == 0 || handle > handles.size() ? 0 : handles[handle - 1];
}


std::vector<wire::Role> Roles::takeNew()
{
  std::vector<wire::Role> result;
  result.swap(fresh);
  return result;
}

} // namespace brain {
} // namespace allocator {
