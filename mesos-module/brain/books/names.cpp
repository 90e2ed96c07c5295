#include "brain/books/names.hpp"

#include <algorithm>
#include <utility>

#include "brain/words/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Of a name that cannot be told as it is so much is shown.
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


uint32_t Roles::number(const std::string& path, size_t levels)
{
  const uint32_t known = find(path);
  if (known != 0) {
    return known;
  }

  uint32_t parent = 0;
  size_t slash = path.find('/');

  for (size_t level = 1; slash != std::string::npos; ++level) {
    if (level > 1 && (level >= levels || slash > ROLE_BYTES_MAX)) {
      break;
    }
    parent = append(path.substr(0, slash), parent);
    slash = path.find('/', slash + 1);
  }

  return append(path, parent);
}


// The number of a role that is known, or is from now on.
uint32_t Roles::append(const std::string& path, uint32_t parent)
{
  const uint32_t known = find(path);
  if (known != 0) {
    return known;
  }

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
  row.told = tellAs(role, parent);
  row.bound = true;
  numbers[path] = role;
  return role;
}


// Mostly nothing, for the path says it.
std::string Roles::tellAs(uint32_t role, uint32_t parent) const
{
  const std::string& path = rows[role].path;
  const std::string& above = rows[parent].path;
  const size_t begin = parent == 0 ? 0 : above.size() + 1;
  const std::string name = path.substr(std::min(begin, path.size()));
  const bool plain = !name.empty() && name.find('/') == std::string::npos &&
      name.size() <= TEXT_BYTES_MAX && isText(name);

  if (plain && rows[parent].told.empty()) {
    return std::string();
  }

  std::string own = name;
  if (!plain) {
    // No role of Mesos has a blank in it, so no other is told so.
    own = toShown(name, SHOWN_BYTES_MAX);
    std::replace(own.begin(), own.end(), '/', '.');
    own += " #" + std::to_string(role);
  }

  return parent == 0 ? own : told(parent) + "/" + own;
}


std::vector<uint32_t> Roles::giveUp(std::vector<bool> inUse)
{
  inUse.resize(rows.size());

  for (uint32_t role = 1; role < rows.size(); ++role) {
    if (rows[role].bound && (inUse[role] || rows[role].handle != 0)) {
      for (uint32_t each = role; each != 0; each = rows[each].parent) {
        inUse[each] = true;
      }
    }
  }

  std::vector<uint32_t> given;
  for (uint32_t role = 1; role < rows.size(); ++role) {
    if (rows[role].bound && !inUse[role]) {
      numbers.erase(rows[role].path);
      rows[role] = Row();
      given.push_back(role);
    }
  }

  free.insert(free.end(), given.begin(), given.end());
  std::sort(free.begin(), free.end(), std::greater<uint32_t>());
  return given;
}


uint32_t Roles::find(const std::string& path) const
{
  auto found = numbers.find(path);
  return found == numbers.end() ? 0 : found->second;
}


bool Roles::isWithin(uint32_t role, uint32_t ancestor) const
{
  const std::string& above = rows[ancestor].path;
  const std::string& below = rows[role].path;

  return role == ancestor || ancestor == 0 ||
      (below.size() > above.size() && below[above.size()] == '/' &&
       below.compare(0, above.size(), above) == 0);
}


void Roles::forgetHandles()
{
  for (Row& row : rows) {
    row.handle = 0;
  }
  handles.clear();
  fresh.clear();
}


// Parents first.
uint32_t Roles::handle(uint32_t role)
{
  std::vector<uint32_t> unheard;
  for (uint32_t each = role; each != 0 && rows[each].handle == 0;
       each = rows[each].parent) {
    unheard.push_back(each);
  }

  for (auto each = unheard.rbegin(); each != unheard.rend(); ++each) {
    handles.push_back(*each);
    rows[*each].handle = static_cast<uint32_t>(handles.size());

    wire::Role message;
    message.set_role(rows[*each].handle);
    message.set_path(told(*each));
    fresh.push_back(message);
  }

  return rows[role].handle;
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
