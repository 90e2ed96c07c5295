#include "adapter/handles.hpp"

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

TEST(HandleTableTest, TheLowestFreeHandleComesFirst)
{
  HandleTable<AgentID> table;
  EXPECT_EQ(1u, table.bind(agentId("a")));
  EXPECT_EQ(2u, table.bind(agentId("b")));
  EXPECT_EQ(3u, table.bind(agentId("c")));
  EXPECT_EQ(2u, table.bind(agentId("b")));

  table.release(agentId("b"));
  table.release(agentId("a"));
  EXPECT_EQ(nullptr, table.id(2));
  EXPECT_EQ(1u, table.bind(agentId("d")));
  EXPECT_EQ(2u, table.bind(agentId("e")));
  EXPECT_EQ(4u, table.bind(agentId("f")));
}


TEST(HandleTableTest, AnyNumberMayBeAskedFor)
{
  HandleTable<AgentID> table;
  table.bind(agentId("a"));
  EXPECT_EQ(nullptr, table.id(0));
  EXPECT_EQ(nullptr, table.id(2));
  EXPECT_EQ(nullptr, table.id(UINT32_MAX));
  EXPECT_EQ(agentId("a"), *table.id(1));
}


// A number that is bound again must not take a decision for its earlier
// bearer.
TEST(HandleTableTest, WhoeverCouldNotKnowOfTheEndIsExcused)
{
  HandleTable<FrameworkID> table;
  const uint32_t handle = table.bind(frameworkId("one"));
  table.sent(handle, 3);
  table.release(frameworkId("one"), 7);

  EXPECT_TRUE(table.excused(handle, 6));
  EXPECT_FALSE(table.excused(handle, 7));
  EXPECT_FALSE(table.excused(handle + 1, 0));
  EXPECT_FALSE(table.excused(0, 0));
}


TEST(HandleTableTest, ABindingKnowsWhenItWasTold)
{
  HandleTable<AgentID> table;
  table.sent(table.bind(agentId("a")), 5);
  EXPECT_EQ(5u, table.batch(1));

  table.release(agentId("a"));
  EXPECT_EQ(0u, table.batch(1));
  table.sent(table.bind(agentId("b")), 9);
  EXPECT_EQ(9u, table.batch(1));
}


TEST(KindTableTest, WhatCanBeAddedUpIsOneKind)
{
  KindTable kinds;
  const uint32_t cpus = kinds.intern(*parse("cpus:1").begin());
  EXPECT_EQ(0u, cpus);
  EXPECT_EQ(cpus, kinds.intern(*allocated("cpus:7", "a").begin()));
  EXPECT_NE(cpus, kinds.intern(*parse("mem:1").begin()));

  const uint32_t reserved = kinds.intern(*parse("cpus(a):1").begin());
  EXPECT_NE(cpus, reserved);
  EXPECT_NE(reserved, kinds.intern(*parse("cpus(b):1").begin()));
  EXPECT_EQ(reserved, kinds.intern(*parse("cpus(a):5").begin()));

  Resource revocable = *parse("cpus:1").begin();
  revocable.mutable_revocable();
  EXPECT_NE(cpus, kinds.intern(revocable));
  EXPECT_EQ(5u, kinds.takeNew().size());
  EXPECT_TRUE(kinds.takeNew().empty());
}


Resource volume(const std::string& id)
{
  Resource resource = *parse("disk(a):8").begin();
  resource.mutable_disk()->mutable_persistence()->set_id(id);
  resource.mutable_disk()->mutable_volume()->set_container_path(id);
  return resource;
}


TEST(KindTableTest, SingleVolumesAreNotToldApart)
{
  KindTable kinds;
  const uint32_t space = kinds.intern(*parse("disk(a):8").begin());
  const uint32_t persistent = kinds.intern(volume("one"));
  EXPECT_NE(space, persistent);
  EXPECT_EQ(persistent, kinds.intern(volume("two")));
  EXPECT_EQ(2u, kinds.size());

  const std::vector<wire::Kind> fresh = kinds.takeNew();
  EXPECT_TRUE(fresh[1].indivisible());
  EXPECT_EQ(wire::DISK_FORM_VOLUME, fresh[1].form());
  EXPECT_EQ("a", fresh[1].reserved_role());
  EXPECT_EQ(1u, fresh[1].reservation_depth());
  EXPECT_FALSE(fresh[0].indivisible());
}


// What makes 10,000 objects different makes no more kinds of them, where
// decisions do not depend on it.
TEST(KindTableTest, LabelsPrincipalsIdsAndProvidersMakeNoKinds)
{
  KindTable kinds;

  for (int i = 0; i < 10000; ++i) {
    const std::string id = std::to_string(i);

    Resource labelled = *parse("cpus(eng):1").begin();
    Resource::ReservationInfo* info = labelled.mutable_reservations(0);
    info->set_type(Resource::ReservationInfo::DYNAMIC);
    info->set_principal("principal-" + id);
    mesos::Label* label = info->mutable_labels()->add_labels();
    label->set_key("task");
    label->set_value(id);
    kinds.intern(labelled);

    kinds.intern(volume("volume-" + id));

    Resource provided = *parse("mem:1").begin();
    provided.mutable_provider_id()->set_value("provider-" + id);
    kinds.intern(provided);

    Resource mount = *parse("disk:1").begin();
    Resource::DiskInfo::Source* source = mount.mutable_disk()->mutable_source();
    source->set_type(Resource::DiskInfo::Source::MOUNT);
    source->set_id(id);
    source->set_profile("profile-" + id);
    source->mutable_mount()->set_root("/mnt/" + id);
    kinds.intern(mount);
  }

  EXPECT_EQ(4u, kinds.size());

  // What a provider has is plain: it adds up with what is the agent's own.
  const uint32_t mem = kinds.find(*parse("mem:1").begin());
  EXPECT_EQ(2u, mem);
}


// How the module says what can be split is how Mesos splits.
TEST(KindTableTest, IndivisibleIsWhatMesosDoesNotShrink)
{
  using Source = Resource::DiskInfo::Source;

  for (Source::Type type :
       {Source::PATH,
        Source::MOUNT,
        Source::BLOCK,
        Source::RAW,
        Source::UNKNOWN}) {
    for (int bits = 0; bits < 16; ++bits) {
      Resource resource = *parse("disk(a):8").begin();
      resource.mutable_disk();

      if (type != Source::UNKNOWN) {
        Source* source = resource.mutable_disk()->mutable_source();
        source->set_type(type);
        if ((bits & 1) != 0) {
          source->set_id("id");
        }
        if ((bits & 2) != 0) {
          source->set_profile("profile");
        }
      }
      if ((bits & 4) != 0) {
        resource.mutable_disk()->mutable_persistence()->set_id("p");
      }
      if ((bits & 8) != 0) {
        resource.mutable_provider_id()->set_value("provider");
      }

      mesos::Value::Scalar half;
      half.set_value(4);
      Resource shrunk = resource;
      EXPECT_EQ(!Resources::shrink(&shrunk, half), Traits(resource).indivisible)
          << resource.ShortDebugString();
    }
  }
}


TEST(KindTableTest, TypesOfValuesAreKeptApart)
{
  KindTable kinds;
  const uint32_t ranges = kinds.intern(*parse("ports:[1-2]").begin());
  EXPECT_NE(ranges, kinds.intern(*parse("ports:2").begin()));
  EXPECT_NE(ranges, kinds.intern(*parse("ports:{a,b}").begin()));
}


// With 20 kinds at most: what is reserved to a hundred roles is told as the
// rest of its name once there is no room, and never as another kind later.
TEST(KindTableTest, WhatIsBeyondTheSidecarsKindsIsTheRestOfItsName)
{
  KindTable kinds(20);
  std::set<uint32_t> cpus;
  std::set<uint32_t> mem;

  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 100; ++i) {
      const std::string role = "(role-" + std::to_string(i) + "):1";
      cpus.insert(kinds.intern(*parse("cpus" + role).begin()));
      mem.insert(kinds.intern(*parse("mem" + role).begin()));
      EXPECT_NE(KindTable::NONE + 0, kinds.find(*parse("mem" + role).begin()));
    }
  }

  // A name that comes late has a kind of its own.
  const uint32_t gpus = kinds.intern(*parse("gpus:1").begin());
  EXPECT_FALSE(kinds.whole(gpus));
  EXPECT_LE(kinds.size(), 20u);

  int rests = 0;
  for (const wire::Kind& kind : kinds.takeNew()) {
    rests += kind.rest() ? 1 : 0;
    EXPECT_EQ(kind.rest(), kinds.whole(kind.kind()));
    EXPECT_TRUE(!kind.rest() || kind.reserved_role().empty());
  }

  EXPECT_EQ(2, rests);
  EXPECT_GE(cpus.size(), 4u);
  EXPECT_GE(mem.size(), 4u);
}


// Even 100 names with two kinds each never make more than the sidecar takes.
TEST(KindTableTest, NoMoreKindsThanTheSidecarTakesWhateverComes)
{
  for (size_t most : {1, 2, 7, 64}) {
    KindTable kinds(most);

    for (int i = 0; i < 100; ++i) {
      const std::string name = "name-" + std::to_string(i);
      kinds.intern(*parse(name + ":1").begin());
      kinds.intern(*parse(name + "(role):1").begin());
      ASSERT_LE(kinds.size(), most);
    }
  }
}


TEST(KindTableTest, LookingForAKindDoesNotMakeIt)
{
  KindTable kinds;
  EXPECT_EQ(KindTable::NONE + 0, kinds.find(*parse("cpus:1").begin()));
  EXPECT_FALSE(kinds.known(0));
}


TEST(RoleTableTest, AParentComesBeforeItsChild)
{
  RoleTable roles;
  const uint32_t leaf = roles.bind("eng/ads/web");
  const std::vector<wire::Role> fresh = roles.takeNew();
  ASSERT_EQ(3u, fresh.size());
  EXPECT_EQ("eng", fresh[0].path());
  EXPECT_EQ("eng/ads", fresh[1].path());
  EXPECT_EQ("eng/ads/web", fresh[2].path());
  EXPECT_EQ(leaf, fresh[2].role());

  roles.bind("eng/ads");
  EXPECT_TRUE(roles.takeNew().empty());
}


TEST(AmountTest, ElementsAreCounted)
{
  EXPECT_EQ(1500, amountOf(*parse("cpus:1.5").begin()));
  EXPECT_EQ(7000, amountOf(*parse("ports:[1-5, 9-10]").begin()));
  EXPECT_EQ(2000, amountOf(*parse("zones:{a,b}").begin()));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
