#include "brain/names.hpp"

#include <algorithm>
#include <utility>

#include "brain/text.hpp"

namespace allocator {
namespace brain {

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
  rows[handle - 1].mark = 0;
  handles[id] = handle;
  return handle;
}


void Handles::release(uint32_t handle, uint64_t mark)
{
  const std::string* bearer = id(handle);
  if (bearer == nullptr) {
    return;
  }

  handles.erase(*bearer);
  rows[handle - 1] = Row();
  rows[handle - 1].mark = mark;
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


void Handles::sent(uint32_t handle, uint64_t mark)
{
  if (id(handle) != nullptr) {
    rows[handle - 1].mark = mark;
  }
}


uint64_t Handles::mark(uint32_t handle) const
{
  return id(handle) == nullptr ? 0 : rows[handle - 1].mark;
}


bool Handles::excused(uint32_t handle, uint64_t known) const
{
  return handle != NONE && handle < end() && rows[handle - 1].mark > known;
}


uint32_t Roles::number(const std::string& path)
{
  const uint32_t known = find(path);
  if (known != 0) {
    return known;
  }

  Row row;
  row.path = path;

  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) {
    row.parent = number(path.substr(0, slash));
  }

  uint32_t role = static_cast<uint32_t>(rows.size());
  if (free.empty()) {
    rows.emplace_back();
  } else {
    role = free.back();
    free.pop_back();
  }

  row.top = row.parent == 0 ? role : rows[row.parent].top;
  row.bound = true;
  rows[role] = std::move(row);
  numbers[path] = role;
  return role;
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
  while (role != ancestor && role != 0) {
    role = rows[role].parent;
  }
  return role == ancestor;
}


void Roles::forgetHandles()
{
  for (Row& row : rows) {
    row.handle = 0;
  }
  handles.clear();
  fresh.clear();
}


uint32_t Roles::handle(uint32_t role)
{
  if (role == 0 || rows[role].handle != 0) {
    return rows[role].handle;
  }

  handle(rows[role].parent);
  handles.push_back(role);
  rows[role].handle = static_cast<uint32_t>(handles.size());

  wire::Role message;
  message.set_role(rows[role].handle);
  message.set_path(toText(rows[role].path));
  fresh.push_back(message);
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
