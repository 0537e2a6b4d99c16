/* Aggregation in switches as ns-3 simulates it: workers below switches, and one root if there are several switches.
 *
 *     ns3_aggregation RACKS WORKERS CHUNKS WINDOW FRAME_BYTES RATE_BPS
 *
 * Every worker keeps WINDOW chunks in flight. A switch that has a packet of each child for a slot sends one packet to its
 * parent, or as the root one to each child, and a result is sent on to every child. Packets have no contents except slot
 * and chunk: nothing is added up, and there is no stack of protocols, so that ns-3 does no more than it must. Links are
 * its point-to-point links, and packets go straight from link to link. Prints one object of JSON.
 */
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <ns3/core-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

using namespace ns3;

namespace
{

constexpr uint16_t PROTOCOL = 0x0800; /* the only one besides IPv6 that ns-3's point-to-point links carry */
constexpr uint32_t LINK_HEADER_BYTES = 2;

struct Settings
{
    uint32_t racks, workers, chunks, window, frame_bytes;
    uint64_t rate_bps;
};

uint64_t frames_arrived;

class ChunkHeader : public Header
{
  public:
    uint32_t chunk = 0;

    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("agglab::ChunkHeader").SetParent<Header>().AddConstructor<ChunkHeader>();
        return id;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    void Print(std::ostream& out) const override
    {
        out << chunk;
    }

    uint32_t GetSerializedSize() const override
    {
        return sizeof(chunk);
    }

    void Serialize(Buffer::Iterator start) const override
    {
        start.WriteHtonU32(chunk);
    }

    uint32_t Deserialize(Buffer::Iterator start) override
    {
        chunk = start.ReadNtohU32();
        return sizeof(chunk);
    }
};

/* A node that sends and receives chunks over its links. */
class Member
{
  public:
    explicit Member(const Settings& settings)
        : m_settings(settings)
    {
    }

    virtual ~Member() = default;

    void Connect(Ptr<NetDevice> device, bool is_up)
    {
        if (is_up)
        {
            m_up = device;
        }
        else
        {
            m_down.push_back(device);
        }
        device->SetReceiveCallback(MakeCallback(&Member::Receive, this));
    }

  protected:
    const Settings& m_settings;
    Ptr<NetDevice> m_up;
    std::vector<Ptr<NetDevice>> m_down;

    virtual void Take(uint32_t chunk, bool from_above) = 0;

    void Send(Ptr<NetDevice> device, uint32_t chunk)
    {
        ChunkHeader header;
        Ptr<Packet> packet =
            Create<Packet>(m_settings.frame_bytes - LINK_HEADER_BYTES - header.GetSerializedSize());

        header.chunk = chunk;
        packet->AddHeader(header);
        if (!device->Send(packet, device->GetBroadcast(), PROTOCOL))
        {
            std::fprintf(stderr, "a queue was full\n");
            std::exit(1);
        }
    }

  private:
    bool Receive(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t, const Address&)
    {
        ChunkHeader header;

        frames_arrived++;
        packet->PeekHeader(header);
        Take(header.chunk, device == m_up);
        return true;
    }
};

class Worker : public Member
{
  public:
    using Member::Member;
    uint32_t done = 0;

    void Begin()
    {
        for (uint32_t chunk = 0; chunk < m_settings.window && chunk < m_settings.chunks; chunk++)
        {
            Send(m_up, chunk);
        }
    }

  private:
    void Take(uint32_t chunk, bool) override
    {
        done++;
        if (chunk + m_settings.window < m_settings.chunks)
        {
            Send(m_up, chunk + m_settings.window);
        }
    }
};

class Switch : public Member
{
  public:
    explicit Switch(const Settings& settings)
        : Member(settings),
          m_arrived(settings.window)
    {
    }

  private:
    std::vector<uint32_t> m_arrived;

    void Take(uint32_t chunk, bool from_above) override
    {
        if (!from_above)
        {
            uint32_t& arrived = m_arrived[chunk % m_settings.window];

            if (++arrived < m_down.size())
            {
                return;
            }
            arrived = 0;
            if (m_up)
            {
                Send(m_up, chunk);
                return;
            }
        }
        for (const Ptr<NetDevice>& child : m_down)
        {
            Send(child, chunk);
        }
    }
};

void Join(PointToPointHelper& links, Ptr<Node> below, Member& child, Ptr<Node> above, Member& parent)
{
    NetDeviceContainer ends = links.Install(below, above);

    child.Connect(ends.Get(0), true);
    parent.Connect(ends.Get(1), false);
}

double ProcessorSeconds()
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

} // namespace

int main(int argc, char** argv)
{
    PointToPointHelper links;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::unique_ptr<Switch>> racks;
    uint32_t done = 0;

    if (argc != 7)
    {
        std::fprintf(stderr, "ns3_aggregation RACKS WORKERS CHUNKS WINDOW FRAME_BYTES RATE_BPS\n");
        return 2;
    }
    const Settings settings{(uint32_t)std::atol(argv[1]), (uint32_t)std::atol(argv[2]), (uint32_t)std::atol(argv[3]),
                            (uint32_t)std::atol(argv[4]), (uint32_t)std::atol(argv[5]), (uint64_t)std::atoll(argv[6])};
    Switch root(settings);
    Ptr<Node> root_node = CreateObject<Node>();

    links.SetDeviceAttribute("DataRate", DataRateValue(DataRate(settings.rate_bps)));
    links.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
    for (uint32_t i = 0; i < settings.racks; i++)
    {
        Ptr<Node> rack_node = settings.racks > 1 ? CreateObject<Node>() : root_node;
        Switch* rack = &root;

        if (settings.racks > 1)
        {
            racks.push_back(std::make_unique<Switch>(settings));
            rack = racks.back().get();
            Join(links, rack_node, *rack, root_node, root);
        }
        for (uint32_t j = 0; j < settings.workers; j++)
        {
            workers.push_back(std::make_unique<Worker>(settings));
            Join(links, CreateObject<Node>(), *workers.back(), rack_node, *rack);
        }
    }
    for (const std::unique_ptr<Worker>& worker : workers)
    {
        Simulator::ScheduleNow(&Worker::Begin, worker.get());
    }
    Simulator::Run();
    for (const std::unique_ptr<Worker>& worker : workers)
    {
        done += worker->done == settings.chunks;
    }
    std::printf("{\"done\": %u, \"frames\": %lu, \"virtual_ns\": %ld, \"cpu_s\": %.6f}\n", done,
                (unsigned long)frames_arrived, (long)Simulator::Now().GetNanoSeconds(), ProcessorSeconds());
    Simulator::Destroy();
    return 0;
}
