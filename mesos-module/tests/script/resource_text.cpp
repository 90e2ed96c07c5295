#include "tests/script/resource_text.hpp"

#include <algorithm>
#include <cstdlib>

namespace allocator {
namespace brain {
namespace {

bool fromNumber(const std::string& text, uint64_t* number)
{
  if (text.empty() || text.size() > 19 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  *number = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}


// Takes "(...)" from `text` at `*at` if present; returns false if it is not
// closed.
bool takeBracket(
    const std::string& text,
    char open,
    char close,
    size_t* at,
    std::string* inside)
{
  if (*at >= text.size() || text[*at] != open) {
    return true;
  }

  const size_t end = text.find(close, *at);
  if (end == std::string::npos) {
    return false;
  }

  *inside = text.substr(*at + 1, end - *at - 1);
  *at = end + 1;
  return true;
}


// Parses a form such as "mount:m1". A block or raw disk with an id is one
// object; without an id it is divisible space.
bool parseForm(const std::string& text, Traits* traits, bool* whole)
{
  const std::string name = text.substr(0, text.find(':'));
  const bool hasId = name.size() < text.size();
  *whole = name == "volume" || name == "mount" ||
      ((name == "block" || name == "raw") && hasId);

  if (name == "volume") {
    traits->form = wire::DISK_FORM_VOLUME;
  } else if (name == "mount") {
    traits->form = wire::DISK_FORM_MOUNT;
  } else if (name == "block") {
    traits->form = wire::DISK_FORM_BLOCK;
  } else if (name == "raw") {
    traits->form = wire::DISK_FORM_RAW;
  } else if (name == "path") {
    traits->form = wire::DISK_FORM_PATH;
  } else {
    return false;
  }

  return true;
}

} // namespace {


std::vector<std::string> split(const std::string& text, char separator)
{
  std::vector<std::string> result;
  size_t begin = 0;

  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) {
      result.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }

  return result;
}


std::string fromPercent(const std::string& text)
{
  std::string result;

  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      const std::string digits = text.substr(at + 1, 2);
      result += static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));
      at += 2;
    } else {
      result += text[at];
    }
  }

  return result;
}


std::string toDecimal(int64_t thousandths)
{
  std::string text = std::to_string(thousandths / 1000);
  const int64_t rest = std::abs(thousandths % 1000);

  if (rest > 0) {
    std::string digits = std::to_string(1000 + rest).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }

  return text;
}


bool fromDecimal(const std::string& text, int64_t* thousandths)
{
  const size_t point = std::min(text.find('.'), text.size());
  uint64_t whole = 0;
  uint64_t rest = 0;
  std::string digits =
      point < text.size() ? text.substr(point + 1) : std::string();

  if (!fromNumber(text.substr(0, point), &whole) || point > 13 ||
      digits.size() > 3) {
    return false;
  }

  digits.resize(3, '0');
  if (!fromNumber(digits, &rest)) {
    return false;
  }

  *thousandths = static_cast<int64_t>(whole * 1000 + rest);
  return true;
}


bool parseQuantities(const std::string& text, Quantities* quantities)
{
  for (const std::string& item : split(text, ';')) {
    const size_t colon = item.find(':');
    int64_t amount;
    if (colon == std::string::npos ||
        !fromDecimal(item.substr(colon + 1), &amount)) {
      return false;
    }
    quantities->emplace_back(fromPercent(item.substr(0, colon)), amount);
  }

  return true;
}


std::string
ResourceText::parse(const std::string& text, const Define& define, Parts* to)
{
  for (const std::string& item : split(text, ';')) {
    const std::string wrong = parseItem(item, define, to);
    if (!wrong.empty()) {
      std::string result = "'";
      return result.append(item).append("': ").append(wrong);
    }
  }

  return std::string();
}


std::string ResourceText::parseItem(
    const std::string& item,
    const Define& define,
    Parts* to)
{
  Traits traits;
  size_t at = item.find_first_of("([{:");
  if (at == std::string::npos) {
    return "it should be like cpus:2";
  }

  traits.name = fromPercent(item.substr(0, at));
  std::string stack;
  std::string disk;
  std::string flags;

  if (!takeBracket(item, '(', ')', &at, &stack) ||
      !takeBracket(item, '[', ']', &at, &disk) ||
      !takeBracket(item, '{', '}', &at, &flags) || at >= item.size() ||
      item[at] != ':') {
    return "a bracket is not closed, or there is no amount";
  }

  std::string key = item.substr(0, at);
  const std::string value = item.substr(at + 1);
  const std::vector<std::string> roles = split(stack, '+');
  bool whole = false;

  if (!roles.empty()) {
    const size_t sign = std::min(roles.back().find('@'), roles.back().size());
    traits.reservedRole = fromPercent(roles.back().substr(0, sign));
    traits.principal = fromPercent(roles.back().substr(sign).erase(0, 1));
    traits.depth = static_cast<uint32_t>(roles.size());
  }

  if (!disk.empty() && !parseForm(disk, &traits, &whole)) {
    return "a disk is a volume, mount, block, raw or path";
  }

  for (const std::string& flag : split(flags, ',')) {
    traits.revocable = traits.revocable || flag == "revocable";
    traits.shared = traits.shared || flag == "shared";
  }

  Part part{0, 0, Spans()};

  if (!value.empty() && (value[0] == '[' || value[0] == '{')) {
    traits.type = value[0] == '[' ? Type::RANGES : Type::SET;
    key += value[0];
    std::string wrong = parseSpans(value, &part);
    if (!wrong.empty()) {
      return wrong;
    }
  } else if (!fromDecimal(value, &part.amount)) {
    return "the amount should be like 1.5, [1-9] or {a,b}";
  }

  part.amount = part.spans.empty() ? countable(part.amount) : part.amount;

  if (whole || traits.shared) {
    traits.unit = part.amount;
    key += "=" + value;
  }

  if (part.amount > 0) {
    part.resourceClass = bind(key, traits, define);
    add(part, to);
  }

  return std::string();
}


std::string ResourceText::parseSpans(const std::string& text, Part* part)
{
  const char close = text[0] == '[' ? ']' : '}';
  if (text.back() != close) {
    return "a bracket is not closed";
  }

  for (const std::string& each : split(text.substr(1, text.size() - 2), ',')) {
    if (close == '}') {
      auto item = items.emplace(each, items.size()).first;
      if (item->second == itemNames.size()) {
        itemNames.push_back(each);
      }
      part->spans.push_back(Span{item->second, item->second});
      continue;
    }

    const std::vector<std::string> ends = split(each, '-');
    Span span;
    if (ends.size() != 2 || !fromNumber(ends[0], &span.begin) ||
        !fromNumber(ends[1], &span.end)) {
      return "a range should be like 1-9";
    }
    part->spans.push_back(span);
  }

  normalize(&part->spans);
  part->amount = amountOf(part->spans);
  return std::string();
}


uint32_t ResourceText::bind(
    const std::string& key,
    const Traits& traits,
    const Define& define)
{
  auto found = numbers.find(key);
  if (found != numbers.end()) {
    return found->second;
  }

  uint32_t number = 0;
  while (number < rows.size() && !rows[number].key.empty()) {
    ++number;
  }

  rows.resize(std::max<size_t>(rows.size(), number + 1));
  rows[number].key = key;
  rows[number].traits = traits;
  numbers[key] = number;
  define(number, traits);
  return number;
}


std::string ResourceText::toText(const Parts& parts) const
{
  // Sorted by name, independent of numbers.
  std::map<std::string, const Part*> sorted;
  for (const Part& part : parts) {
    const bool known = part.resourceClass < rows.size();
    sorted[known ? rows[part.resourceClass].key : "?"] = &part;
  }

  std::string result;
  for (const auto& entry : sorted) {
    const Part& part = *entry.second;
    const std::string& key = entry.first;
    result += result.empty() ? "" : ";";
    result += key.substr(0, key.find_first_of('=', key.find(']') + 1));

    if (part.spans.empty()) {
      result += ":" + toDecimal(part.amount);
      continue;
    }

    result.pop_back();
    const bool isSet = key.back() == '{';
    result += isSet ? ":{" : ":[";
    const char* comma = "";
    for (const Span& span : part.spans) {
      for (uint64_t i = span.begin; isSet && i <= span.end; ++i) {
        result += comma + itemNames[i];
        comma = ",";
      }
      if (!isSet) {
        result +=
            comma + std::to_string(span.begin) + "-" + std::to_string(span.end);
        comma = ",";
      }
    }
    result += isSet ? "}" : "]";
  }

  return result;
}


void ResourceText::forget(const std::vector<uint32_t>& classes)
{
  for (uint32_t resourceClass : classes) {
    if (resourceClass < rows.size()) {
      numbers.erase(rows[resourceClass].key);
      rows[resourceClass] = Row();
    }
  }
}

} // namespace brain {
} // namespace allocator {
